//! Acquiring and releasing while members fail.

use std::time::Duration;

use leasehold_core::{
    ErrorKind, Outcome,
    backend::{BreakOutcome, Loss, QuorumOptions},
};
use leasehold_testkit::scripted::{Fault, Verb};
use tokio::task::JoinSet;

use crate::world::{World, always, fail, heal};

const EACH_ONCE: [usize; 5] = [1; 5];
const NOBODY: [usize; 5] = [0; 5];

#[tokio::test(start_paused = true)]
async fn a_mute_minority_is_waited_for_once_and_briefly() {
    let (world, scripts) = (World::new(5), World::scripts(5));
    always(&scripts[..2], Fault::Never);
    let client = world.client(&scripts);
    let start = world.clock.now();
    let guard = client.lock("a").ttl("10s").acquire().await.unwrap();
    assert_eq!(
        start.until(world.clock.now()),
        Duration::from_millis(250),
        "a quarter of a second, three answers decide"
    );
    assert_eq!(world.held("a").await, [0, 0, 1, 1, 1]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    guard.check().unwrap();
    guard.release().await.unwrap();
    assert_eq!(world.held("a").await, NOBODY);
    let start = world.clock.now();
    let again = client.lock("a").try_acquire().await.unwrap().unwrap();
    again.release().await.unwrap();
    assert_eq!(world.clock.now(), start, "nobody waits again for those who were mute last time");
}

#[tokio::test(start_paused = true)]
async fn a_failing_minority_changes_nothing() {
    let (world, scripts) = (World::new(5), World::scripts(5));
    fail(&scripts[3..]);
    let (client, other) = (world.client(&scripts), world.client(&[]));
    let guard = client.lock("a").ttl("10s").acquire().await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    guard.check().unwrap();
    let Outcome::Busy(busy) = other.lock("a").attempt().await.unwrap() else { panic!("held twice") };
    assert_eq!(busy.holders.len(), 1, "{busy:?}");
    assert_eq!(busy.holders[0].id, guard.id());
    assert_eq!(
        world.held("a").await,
        [1, 1, 1, 0, 0],
        "what a minority granted is given back before busy is told"
    );
    guard.release().await.unwrap();
    world.until_empty("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_failing_majority_is_an_error_and_leaves_nothing() {
    let (world, scripts) = (World::new(5), World::scripts(5));
    fail(&scripts[2..]);
    let client = world.client(&scripts);
    let error = client.lock("a").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("2 of 5 members"), "{error}");
    assert_eq!(world.held("a").await, NOBODY);
}

#[tokio::test(start_paused = true)]
async fn a_mute_majority_is_an_error_within_the_time_of_one_request() {
    let (world, scripts) = (World::new(5), World::scripts(5));
    always(&scripts[2..], Fault::Never);
    let client = world.client(&scripts);
    let start = world.clock.now();
    let error = client.lock("a").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate);
    assert!(
        start.until(world.clock.now()) <= QuorumOptions::default().member_timeout * 2,
        "{:?}",
        start.until(world.clock.now())
    );
    assert_eq!(world.held("a").await, NOBODY);
}

#[tokio::test(start_paused = true)]
async fn grants_whose_answers_are_lost_are_given_back() {
    let (world, scripts) = (World::new(5), World::scripts(5));
    for script in &scripts[..3] {
        script.next(Verb::Attempt, [Fault::Lost]);
    }
    let client = world.client(&scripts);
    let error = client.lock("a").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate);
    client.idle().await;
    assert_eq!(world.held("a").await, NOBODY);
    let guard = client.lock("a").try_acquire().await.unwrap().unwrap();
    assert_eq!(world.held("a").await, EACH_ONCE);
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_who_waits_wins_though_answers_are_lost_again_and_again() {
    let (world, scripts) = (World::new(5), World::scripts(5));
    for script in &scripts {
        script.next(Verb::Attempt, [Fault::Lost, Fault::Late(Duration::from_millis(30)), Fault::Lost]);
    }
    let client = world.client(&scripts);
    let guard = client.lock("a").wait("60s").acquire().await.unwrap();
    guard.release().await.unwrap();
    client.idle().await;
    for script in &scripts {
        script.landed().await;
    }
    world.until_empty("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_arrives_after_the_release_wins_nothing() {
    let (world, scripts) = (World::new(5), World::scripts(5));
    for script in &scripts[1..] {
        script.next(Verb::Attempt, [Fault::Late(Duration::from_secs(1))]);
    }
    let client = world.client(&scripts);
    assert!(client.lock("a").try_acquire().await.is_err());
    client.idle().await;
    for script in &scripts {
        script.landed().await;
    }
    assert_eq!(world.held("a").await, NOBODY);
}

#[tokio::test(start_paused = true)]
async fn validity_counts_from_before_the_first_request() {
    let (world, scripts) = (World::new(5), World::scripts(5));
    for script in &scripts {
        script.next(Verb::Attempt, [Fault::Slow(Duration::from_millis(150))]);
    }
    let client = world.client(&scripts);
    let start = world.clock.now();
    let guard = client.lock("a").ttl("10s").acquire().await.unwrap();
    let took = start.until(world.clock.now());
    assert!(took >= Duration::from_millis(150));
    // One part in a hundred and two milliseconds for what clocks may drift apart.
    assert_eq!(guard.remaining() + took, Duration::from_millis(10_000 - 100 - 2));
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_over_when_the_answers_come_is_not_handed_out() {
    let (world, scripts) = (World::new(5), World::scripts(5));
    for script in &scripts {
        script.next(Verb::Attempt, [Fault::Slow(Duration::from_millis(150))]);
    }
    let client = world.client(&scripts);
    let lock = client.lock("a").ttl("10s");
    let mut trying = JoinSet::from_iter([async move { lock.try_acquire().await }]);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(world.held("a").await, EACH_ONCE, "all have granted it, and no answer is here");
    world.clock.suspend(Duration::from_millis(9_900));
    let error = trying.join_next().await.unwrap().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    client.idle().await;
    assert_eq!(world.held("a").await, NOBODY);
}

#[tokio::test(start_paused = true)]
async fn a_slow_members_late_grant_belongs_to_the_hold_and_goes_with_it() {
    let (world, scripts) = (World::new(5), World::scripts(5));
    scripts[4].next(Verb::Attempt, [Fault::Slow(Duration::from_secs(2))]);
    let client = world.client(&scripts);
    let guard = client.lock("a").acquire().await.unwrap();
    assert_eq!(world.held("a").await, [1, 1, 1, 1, 0]);
    world.eventually("granted late", async || world.held("a").await == EACH_ONCE).await;
    guard.release().await.unwrap();
    world.until_empty("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_comes_after_the_release_is_released() {
    let (world, scripts) = (World::new(5), World::scripts(5));
    scripts[4].next(Verb::Attempt, [Fault::Slow(Duration::from_secs(2))]);
    let client = world.client(&scripts);
    client.lock("a").acquire().await.unwrap().release().await.unwrap();
    assert_eq!(world.held("a").await, NOBODY);
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(world.held("a").await, [0, 0, 0, 0, 1], "it arrives now");
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert_eq!(world.held("a").await, NOBODY, "and is given back when it is answered");
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_comes_after_a_lost_vote_is_given_back() {
    let (world, scripts) = (World::new(5), World::scripts(5));
    let others = World::scripts(5);
    fail(&others[3..]);
    let holder = world.client(&others);
    let guard = holder.lock("a").acquire().await.unwrap();
    assert_eq!(world.held("a").await, [1, 1, 1, 0, 0]);
    scripts[4].next(Verb::Attempt, [Fault::Slow(Duration::from_secs(2))]);
    let client = world.client(&scripts);
    let waits = client.lock("a").wait("20s");
    let waiting = JoinSet::from_iter([async move { waits.acquire().await.map(drop) }]);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(world.held("a").await, [1, 1, 1, 0, 1], "it was granted, and nobody knows yet");
    world
        .eventually("given back though the contender still waits", async || {
            world.held("a").await == [1, 1, 1, 0, 0]
        })
        .await;
    guard.check().unwrap();
    drop(waiting);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_cannot_be_told_of_a_release_is_told_later() {
    let (world, scripts) = (World::new(5), World::scripts(5));
    let client = world.client(&scripts);
    let guard = client.lock("a").acquire().await.unwrap();
    fail(&scripts[..2]);
    guard.release().await.unwrap();
    assert_eq!(world.held("a").await, [1, 1, 0, 0, 0]);
    heal(&scripts);
    let start = world.clock.now();
    world.until_empty("a").await;
    assert!(start.until(world.clock.now()) < Duration::from_secs(5), "long before the lease ended");
}

#[tokio::test(start_paused = true)]
async fn a_release_that_a_majority_does_not_hear_is_tried_until_it_does() {
    let (world, scripts) = (World::new(5), World::scripts(5));
    let client = world.client(&scripts);
    let guard = client.lock("a").acquire().await.unwrap();
    fail(&scripts[..3]);
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Unavailable);
    heal(&scripts);
    client.idle().await;
    assert_eq!(world.held("a").await, NOBODY);
}

#[tokio::test(start_paused = true)]
async fn a_break_reaches_a_holder_through_a_minority_that_is_down() {
    let (world, scripts) = (World::new(5), World::scripts(5));
    let client = world.client(&[]);
    let guard = client.lock("a").ttl("10s").acquire().await.unwrap();
    fail(&scripts[..2]);
    let operator = world.client(&scripts);
    assert_eq!(operator.break_hold("a", guard.id(), "it hangs").await.unwrap(), BreakOutcome::Broken);
    let loss = guard.lost().await;
    assert!(matches!(&loss, Loss::Broken(broken) if &*broken.why == "it hangs"), "{loss:?}");
    let next = operator.lock("a").wait("60s").acquire().await.unwrap();
    assert!(next.fence() > guard.fence());
    next.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn names_are_listed_once_each_though_members_are_away() {
    let (world, scripts) = (World::new(5), World::scripts(5));
    let client = world.client(&scripts);
    let mut guards = Vec::new();
    for number in 0..7 {
        // Each on another majority.
        heal(&scripts);
        fail(&scripts[number % 5..][..1]);
        guards.push(client.lock(&format!("n/{number}")).acquire().await.unwrap());
    }
    heal(&scripts);
    always(&scripts[..1], Fault::Never);
    fail(&scripts[3..4]);
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = client.list("n/", cursor.as_deref(), 3).await.unwrap();
        found.extend(page.locks.into_iter().map(|lock| (lock.name, lock.holders.len())));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    found.sort();
    let wanted: Vec<_> = (0..7).map(|number| (format!("n/{number}"), 1)).collect();
    assert_eq!(found, wanted);
    fail(&scripts[1..2]);
    assert!(client.list("n/", None, 3).await.is_err(), "two members are no majority");
}
