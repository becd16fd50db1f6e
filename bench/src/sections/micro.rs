//! What single operations cost: time, and allocations, which no noise can change.

use std::{hint::black_box, sync::Arc, time::Duration};

use leasehold::{
    ClaimId, ClientId, Guard, Key, Who,
    backend::{
        ClaimSpec, Life, Memory, Mode, Shape,
        record::{Moment, Record, Step, Surroundings},
    },
};

use crate::{
    allocations,
    findings::{Findings, Table},
    harness::{Spread, Stage, figure},
};

/// An operation, done so many times.
type Operation<'a> = (&'static str, Box<dyn FnMut(u32) + 'a>);

pub(super) fn run(stage: &mut Stage, findings: &mut Findings) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let client = runtime.block_on(async { leasehold::Client::new(Memory::new()) });
    let lock = client.lock("micro");
    let guard = runtime.block_on(client.lock("held").acquire()).map_err(|error| error.to_string())?;
    let mut failed = Ok(());
    let pair = |times| {
        let done: leasehold::Result<()> = runtime.block_on(async {
            for _ in 0..times {
                lock.acquire().await?.release().await?;
            }
            Ok(())
        });
        if let Err(error) = done {
            failed = Err(error.to_string());
        }
    };
    let mut operations: Vec<Operation<'_>> = vec![("acquire and release, memory store", Box::new(pair))];
    operations.extend(reads(&guard));
    operations.extend(records()?);
    stage.progress.section("single operations", operations.len());
    let (rounds, times) = stage.args.pick((3, 200), (15, 20_000));
    let head = ["operation", "ns", "allocations"];
    let mut table = Table::new("Single operations", "On one thread, without a server.", &head);
    for (what, operation) in &mut operations {
        stage.progress.step(what);
        let (nanos, allocated) = measure(rounds, times, operation.as_mut())?;
        table.row([(*what).to_owned(), nanos.text(), figure(allocated)]);
    }
    drop(operations);
    findings.tables.push(table);
    failed
}

/// What a holder asks its guard, and the edge where names are checked.
fn reads(guard: &Guard) -> Vec<Operation<'_>> {
    let state = move |times| (0..times).for_each(|_| _ = black_box(guard.state()));
    let check = move |times| (0..times).for_each(|_| drop(black_box(guard.check())));
    let fence = move |times| (0..times).for_each(|_| _ = black_box(guard.fence()));
    let key = |times| (0..times).for_each(|_| drop(black_box(Key::new("shop:", black_box("order:42")))));
    vec![
        ("guard: state", Box::new(state)),
        ("guard: check", Box::new(check)),
        ("guard: fence", Box::new(fence)),
        ("key: checked and joined with its prefix", Box::new(key)),
    ]
}

/// What a store with compare-and-set does for a pair.
fn records() -> Result<Vec<Operation<'static>>, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let client = ClientId::random();
    let id: ClaimId = format!("{client}:1").parse().map_err(|_| "an id has a text".to_owned())?;
    let key = Key::new("", "micro").map_err(|error| said(&error))?;
    let (mode, shape, life, ttl) =
        (Mode::Exclusive, Shape::default(), Life::Session, Duration::from_secs(30));
    let who = Arc::new(Who::here());
    let spec = ClaimSpec { id, key, mode, shape, ttl, fair: false, life, who, label: None, fences: 1 };
    let attempt = Step::Attempt { spec: Arc::new(spec), waiting: false };
    let release = Step::Release { id, barrier: false };
    let alive = |_: ClientId| true;
    let apply = move |record: &mut Record, step: &Step| {
        let around = Surroundings { now: Moment(1_000_000), session: Some(client), crowd: 64, alive: &alive };
        drop(black_box(record.apply(step, &around)));
    };
    let mut held = Record::new(0);
    apply(&mut held, &attempt);
    let text = held.encode();
    let mut record = Record::new(0);
    let pair = move |times| {
        for _ in 0..times {
            apply(&mut record, &attempt);
            apply(&mut record, &release);
        }
    };
    let encode = move |times| (0..times).for_each(|_| drop(black_box(held.encode())));
    let decode = move |times| (0..times).for_each(|_| drop(black_box(Record::decode(&text))));
    Ok(vec![
        ("record: attempt and release", Box::new(pair)),
        ("record: to text", Box::new(encode)),
        ("record: from text", Box::new(decode)),
    ])
}

/// Nanoseconds and allocations of one.
fn measure(rounds: u32, times: u32, operation: &mut dyn FnMut(u32)) -> Result<(Spread, f64), String> {
    operation(times / 4 + 1);
    allocations::count(true);
    operation(times);
    let allocated = allocations::count(false) as f64 / f64::from(times);
    let nanos: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = std::time::Instant::now();
            operation(times);
            start.elapsed().as_secs_f64() * 1e9 / f64::from(times)
        })
        .collect();
    Spread::of(&nanos).map(|nanos| (nanos, allocated)).ok_or_else(|| "no round was run".to_owned())
}
