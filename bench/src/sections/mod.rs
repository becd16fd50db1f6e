//! What is measured, a file each.

mod command;
mod counter;
mod exact;
mod handoff;
mod held;
mod hold;
mod memory;
mod micro;
mod pairs;
mod processes;
mod scale;
mod servers;
mod sqlite;
mod stores;
mod waiters;

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use crate::{
    args::Args,
    findings::Findings,
    harness::{Contender, Ran, Stage},
    page,
};

/// A part of the benchmark that can be run by itself.
pub(crate) struct Section {
    pub(crate) name: &'static str,
    run: fn(&mut Stage, &mut Findings) -> Result<(), String>,
}

/// All of them, in the order of the page.
pub(crate) const ALL: &[Section] = &[
    Section { name: "pairs", run: pairs::run },
    Section { name: "counter", run: counter::run },
    Section { name: "processes", run: processes::run },
    Section { name: "hold", run: hold::run },
    Section { name: "handoff", run: handoff::run },
    Section { name: "waiters", run: waiters::run },
    Section { name: "held", run: held::run },
    Section { name: "memory", run: memory::run },
    Section { name: "sqlite", run: sqlite::run },
    Section { name: "stores", run: stores::run },
    Section { name: "command", run: command::run },
    Section { name: "exact", run: exact::run },
    Section { name: "scale", run: scale::run },
    Section { name: "micro", run: micro::run },
];

/// Runs what is asked for; an error if something of ours did not run or came out wrong.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let wanted = |section: &&Section| args.only.as_deref().is_none_or(|only| only == section.name);
    let sections: Vec<&Section> = ALL.iter().filter(wanted).collect();
    let mut stage = Stage::set(args, sections.len())?;
    let mut findings = Findings::default();
    for section in sections {
        if let Err(problem) = (section.run)(&mut stage, &mut findings) {
            findings.wrong(true, format!("{}: {problem}", section.name));
        }
    }
    stage.progress.clear();
    crate::say(&page::summary(&findings));
    if let Some(file) = &args.page {
        page::write(file, &stage, &findings)?;
        crate::say(&format!("written: {}", file.display()));
    }
    match findings.wrong.len() {
        0 => Ok(()),
        count => Err(format!("{count} of ours came out wrong: {}", findings.wrong.join("; "))),
    }
}

/// In how many rounds other libraries take part.
const PEER_ROUNDS: usize = 3;

/// Whoever takes longer is timed once.
const SLOW: Duration = Duration::from_secs(20);

/// Those still in the race: whoever failed once is not asked again, since that mostly costs a minute.
struct Field {
    contenders: Vec<Contender>,
    what: String,
    peer_rounds: usize,
    slow: HashSet<String>,
}

impl Field {
    fn new(what: &str, own: Vec<Contender>, stage: &Stage) -> Self {
        Self::of(what, [own, stage.peers_of("redis")].concat())
    }

    fn of(what: &str, contenders: Vec<Contender>) -> Self {
        Self { contenders, what: what.to_owned(), peer_rounds: PEER_ROUNDS, slow: HashSet::new() }
    }

    /// Does something with each in a round of several: others are spared the later ones.
    fn round<T>(
        &mut self,
        round: usize,
        findings: &mut Findings,
        mut run: impl FnMut(&Contender) -> Result<T, String>,
        mut keep: impl FnMut(&Contender, T),
    ) {
        let (spared, mut slow) = (round >= self.peer_rounds, std::mem::take(&mut self.slow));
        let timed = |contender: &Contender| {
            if contender.is_peer() && (spared || slow.contains(&contender.name)) {
                return Ok(None);
            }
            let began = Instant::now();
            let ran = run(contender).map(Some);
            if began.elapsed() > SLOW {
                slow.insert(contender.name.clone());
            }
            ran
        };
        self.each(findings, timed, |contender, ran| {
            if let Some(ran) = ran {
                keep(contender, ran);
            }
        });
        self.slow = slow;
    }

    /// Does something with each, in turn.
    fn each<T>(
        &mut self,
        findings: &mut Findings,
        mut run: impl FnMut(&Contender) -> Result<T, String>,
        mut keep: impl FnMut(&Contender, T),
    ) {
        self.contenders.retain(|contender| match run(contender) {
            Ok(found) => {
                keep(contender, found);
                true
            }
            Err(problem) => {
                findings.wrong(contender.is_ours, format!("{}, {}: {problem}", self.what, contender.name));
                false
            }
        });
    }
}

/// A count that is not what it should be is an error, whoever's it is.
fn exact(ran: Ran, tasks: usize) -> Result<Ran, String> {
    if ran.counted == tasks as u64 {
        return Ok(ran);
    }
    Err(format!("NOT EXACT: {} after {tasks} increments under the lock", ran.counted))
}
