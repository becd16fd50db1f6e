//! Stores other than Redis: a lock nobody else wants, against the bare requests that it needs; and from one process to
//! another, against whoever has locks on the same server.

use super::{
    Field,
    handoff::pass,
    servers::{self, Store},
};
use crate::{
    findings::{Findings, Table},
    harness::{Contender, Samples, Stage, Task},
};

const OURS: &str = "leasehold";
const BARE: &str = "bare requests";

/// A store, and which targets are measured on it.
struct Measured {
    store: Store,
    pair: Option<&'static str>,
    /// Of the hand-off: the target, and whom it is about.
    handoff: &'static [(&'static str, &'static str)],
}

const STORES: &[Measured] = &[
    Measured {
        store: servers::ETCD,
        pair: Some("etcd.pair"),
        handoff: &[("etcd.handoff", "etcd concurrency")],
    },
    Measured {
        store: servers::ZOOKEEPER,
        pair: Some("zookeeper.pair"),
        handoff: &[("zookeeper.handoff.curator", "Curator"), ("zookeeper.handoff.kazoo", "kazoo")],
    },
    Measured {
        store: servers::POSTGRES,
        pair: Some("postgres.pair"),
        handoff: &[("postgres.handoff", "pg_advisory_lock")],
    },
    Measured { store: servers::MARIADB, pair: Some("mariadb.pair"), handoff: &[] },
    Measured { store: servers::MONGODB, pair: Some("mongodb.pair"), handoff: &[] },
    Measured { store: servers::MONGODB_SET, pair: None, handoff: &[] },
    Measured { store: servers::MEMCACHED, pair: Some("memcached.pair"), handoff: &[] },
];

/// The two tables, in the making.
struct Tables {
    pairs: Table,
    handoff: Table,
}

#[expect(clippy::unnecessary_wraps, reason = "sections have one shape, and some can fail")]
pub(super) fn run(stage: &mut Stage, findings: &mut Findings) -> Result<(), String> {
    let runs = 2 * stage.args.rounds() + 2 * handoff_rounds(stage);
    // A set takes long to start, and no target is about it.
    let stores: Vec<_> =
        STORES.iter().filter(|measured| measured.pair.is_some() || !stage.args.quick).collect();
    stage.progress.section("other stores", stores.len() * runs);
    let mut tables = Tables::new();
    for measured in stores {
        match measured.store.start() {
            Ok(Ok(server)) => {
                let pair = pairs(stage, findings, measured, &server.url, &mut tables.pairs);
                handoff(stage, findings, measured, &server.url, (pair, &mut tables.handoff));
            }
            Ok(Err(missing)) => {
                tables.pairs.row([measured.store.name, &missing, "", "", "", ""].map(str::to_owned));
                measured.none(findings, &missing);
            }
            Err(problem) => {
                measured.none(findings, &problem);
                findings.wrong(true, problem);
            }
        }
    }
    findings.tables.extend([tables.pairs, tables.handoff]);
    Ok(())
}

impl Measured {
    /// There are no figures for it.
    fn none(&self, findings: &mut Findings, why: &str) {
        for id in self.pair.into_iter().chain(self.handoff.iter().map(|(id, _)| *id)) {
            findings.target(id, Err(why.to_owned()));
        }
    }
}

impl Tables {
    fn new() -> Self {
        let note = "One task: an acquisition and its release, beside the requests that these need, made by the same \
                    client library alone: as many round trips, as much written, as sure. Of these servers \
                    only etcd, and MongoDB where it finds no room in memory, wait for a disk here.";
        let head =
            ["store", "leasehold, pairs/s", "bare requests, pairs/s", "×", "p50 µs, leasehold", "bare"];
        let pairs = Table::new("Other stores: uncontended", note, &head);
        let note = "µs from the call of release in one process to the return of acquire in the other, which has \
                    waited for 20 to 60 ms by then; for scale, the two bare requests of an uncontended pair.";
        let head = ["store", "", "µs: p50 (least–greatest)", "bare pair, µs"];
        Self { pairs, handoff: Table::new("Other stores: hand-off between two processes", note, &head) }
    }
}

fn handoff_rounds(stage: &Stage) -> usize {
    stage.args.pick(1, 3)
}

/// What a bare pair takes, in µs.
fn pairs(
    stage: &mut Stage,
    findings: &mut Findings,
    measured: &Measured,
    url: &str,
    table: &mut Table,
) -> Option<f64> {
    let (store, seconds) = (measured.store.name, stage.args.pick(0.3, 1.0));
    let contenders = vec![Contender::direct(), Contender::ours()];
    let mut field = Field::of(&format!("pairs on {store}"), contenders);
    let (mut rate, mut p50) = (Samples::default(), Samples::default());
    for _ in 0..stage.args.rounds() {
        let run = |contender: &Contender| {
            stage.run(Task { url: Some(url), ..Task::new(contender, "pairs", 1, seconds) })
        };
        field.each(findings, run, |contender, ran| {
            rate.push(&contender.name, 1, ran.first().rate());
            p50.push(&contender.name, 1, ran.first().micros_at(0.5));
        });
    }
    let (ours, bare) = (rate.median(OURS, 1), rate.median(BARE, 1));
    if let Some(id) = measured.pair {
        findings.ratio(id, ours, bare, "it did not run");
    }
    let text = |samples: &Samples, name| samples.spread(name, 1).map(|spread| spread.text());
    let ratio = ours.zip(bare).map(|(ours, bare)| format!("{:.2}", ours / bare));
    let cells = [text(&rate, OURS), text(&rate, BARE), ratio, text(&p50, OURS), text(&p50, BARE)];
    let cells = cells.map(|cell| cell.unwrap_or_else(|| "—".to_owned()));
    table.row(std::iter::once(store.to_owned()).chain(cells));
    p50.median(BARE, 1)
}

fn handoff(
    stage: &mut Stage,
    findings: &mut Findings,
    measured: &Measured,
    url: &str,
    (bare, table): (Option<f64>, &mut Table),
) {
    let (store, turns) = (&measured.store, stage.args.pick(4, 20));
    let contenders = [vec![Contender::ours()], store.peers(stage)].concat();
    let mut field = Field::of(&format!("hand-off on {}", store.name), contenders);
    let mut micros = Samples::default();
    for _ in 0..handoff_rounds(stage) {
        let run = |contender: &Contender| {
            stage.progress.step(&format!("{}, {}", store.name, contender.name));
            pass(contender, url, turns)
        };
        field.each(findings, run, |contender, all| {
            for latency in all {
                micros.push(&contender.name, 1, latency);
            }
        });
    }
    let ours = micros.median(OURS, 1);
    for (id, peer) in measured.handoff {
        findings.ratio(id, ours, micros.median(peer, 1), &stage.why_missing(peer));
    }
    let bare = bare.map(crate::harness::figure).unwrap_or_default();
    for name in field.contenders.iter().map(|contender| &contender.name) {
        let Some(spread) = micros.spread(name, 1) else { continue };
        table.row([store.name.to_owned(), name.clone(), spread.text(), bare.clone()]);
    }
}
