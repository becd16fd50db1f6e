//! The engine under schedules drawn from seeds.
//!
//! Each seed is a small world: a memory store, clients whose requests are slow, late, refused or lost as the dice say,
//! and workers who do everything a user can do, cut off at any poll. Time is virtual, the order in which things run is
//! drawn as well, and nothing else decides: one seed is one run, again and again. Its history must be sound, every loss
//! told in time, and nothing may be left behind, neither in the store nor in a client nor on the runtime.
//!
//! `LEASEHOLD_SCHEDULES` says how many seeds are run; `LEASEHOLD_SEED` plays a single one.
//!
//! What this does not do: one thread runs it all, so two threads within a single step of the engine are never seen, and a
//! wake-up that is lost is made good by the next poll. Both are for `crates/interleave`, where time stands still. A task
//! that is always ready at one moment is no failure here either, but a run that does not end.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the harness shows it when a schedule fails")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

mod ledger;
mod nemesis;
mod whim;
mod worker;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// How many seeds are run unless the environment says otherwise: some fifteen seconds without optimisation.
const SCHEDULES: u64 = 2_000;

#[test]
fn whatever_the_schedule_locks_exclude_losses_are_told_and_nothing_is_left() {
    let seeds = match number("LEASEHOLD_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("LEASEHOLD_SCHEDULES").unwrap_or(SCHEDULES),
    };
    let mut grants = 0;
    for seed in seeds.clone() {
        grants += played(seed).grants;
    }
    println!("{} schedules, {grants} grants", seeds.count());
    assert!(grants > 0, "schedules without a grant prove nothing");
}

#[test]
fn one_seed_is_one_history() {
    for seed in 1..=20 {
        let [once, again] = [played(seed), played(seed)];
        assert!(
            once.history == again.history,
            "seed {seed} gave two histories: something else decides as well"
        );
    }
}

/// Plays one schedule; if it fails, says how to see that again.
fn played(seed: u64) -> world::Played {
    match catch_unwind(AssertUnwindSafe(|| world::play(seed))) {
        Ok(played) => played,
        Err(panic) => {
            eprintln!(
                "replay: LEASEHOLD_SEED={seed} cargo test -p leasehold-testkit --test schedules whatever"
            );
            resume_unwind(panic)
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}")))
}
