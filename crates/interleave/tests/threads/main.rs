//! The engine's races, under orders of threads that shuttle draws.
//!
//! Here the whole of core runs on shuttle: its mutexes, atomics, channels and tasks are shuttle's, and another thread may
//! run before any of their operations. Each race is small and tried in many orders, drawn at random and drawn so that few
//! changes of thread matter (PCT). Time stands still unless a race lets it jump, so nothing is mended by a poll or a
//! lease: whoever is not woken, or waits for what nobody will do, is a deadlock that shuttle reports.
//!
//! The orders come from `LEASEHOLD_SEED` (1 unless it is set), `LEASEHOLD_ORDERS` says how many are tried of each sort,
//! and a failure prints how to play its order again.
//!
//! What this does not do: shuttle knows one order of all memory, as if every atomic were sequentially consistent. In
//! the engine they are, but for counters that only give out numbers and for two fields of a hold that the keeper's lock
//! guards; by that reading weaker memory has nothing to show here, and loom was left out. Faults, lost answers and long
//! runs are the schedules of `crates/testkit`; what the quorum shares between threads is not here.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says how to see it again"
)]

mod races;
mod stage;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use shuttle::{
    Config, Runner,
    scheduler::{PctScheduler, RandomScheduler},
};

/// How many orders of each sort are tried unless the environment says otherwise.
const ORDERS: u64 = 150;

/// So many changes of thread at most decide in the orders of PCT.
const DEPTH: usize = 3;

/// Tries a race in many orders, or in the one that is to be played again.
fn explore(name: &str, race: fn()) {
    let tried = catch_unwind(AssertUnwindSafe(|| {
        if let Ok(order) = std::env::var("LEASEHOLD_ORDER") {
            return shuttle::replay(race, &order);
        }
        let (seed, orders) = (number("LEASEHOLD_SEED", 1), number("LEASEHOLD_ORDERS", ORDERS) as usize);
        Runner::new(RandomScheduler::new_from_seed(seed, orders), Config::new()).run(race);
        Runner::new(PctScheduler::new_from_seed(seed, DEPTH, orders), Config::new()).run(race);
    }));
    if let Err(panic) = tried {
        eprintln!(
            "replay: LEASEHOLD_ORDER=(the schedule above) cargo test -p leasehold-interleave --test threads {name}"
        );
        resume_unwind(panic);
    }
}

fn number(variable: &str, otherwise: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}")),
        Err(_) => otherwise,
    }
}
