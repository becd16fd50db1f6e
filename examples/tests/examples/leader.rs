//! The leader and its followers.

use std::process::Command;

use leasehold_testkit::servers::{redis::Redis, start_or_skip};

use crate::running::{Running, Stage};

#[test]
fn a_follower_leads_with_a_greater_fence_when_the_leader_is_killed_and_when_it_ends() {
    let Some(redis) = start_or_skip(Redis::start) else { return };
    let mut stage = Stage::new();
    let start = |stage: &Stage| {
        stage.start(Command::new(env!("CARGO_BIN_EXE_leader")).env("LEASEHOLD_STORE", redis.url()))
    };
    let first = start(&stage);
    let first_fence = fence_of(&mut stage, &first);
    let second = start(&stage);
    assert_eq!(seen_by(&mut stage, &second, &first), first_fence);

    first.kill();
    let second_fence = fence_of(&mut stage, &second);
    assert!(second_fence > first_fence, "{second_fence} after {first_fence}");
    let third = start(&stage);
    assert_eq!(seen_by(&mut stage, &third, &second), second_fence);

    second.interrupt();
    let third_fence = fence_of(&mut stage, &third);
    assert!(third_fence > second_fence, "{third_fence} after {second_fence}");
    third.interrupt();
}

/// Waits until it leads.
fn fence_of(stage: &mut Stage, leader: &Running) -> u64 {
    stage.wait_for(&format!("{}: leads with fence ", leader.name())).parse().unwrap()
}

/// Waits until one sees the other lead.
fn seen_by(stage: &mut Stage, follower: &Running, leader: &Running) -> u64 {
    let words = format!("{}: sees {} lead with fence ", follower.name(), leader.name());
    stage.wait_for(&words).parse().unwrap()
}
