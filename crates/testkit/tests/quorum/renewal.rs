//! Keeping a lock while members fail and forget.

use std::time::Duration;

use leasehold_core::{ErrorKind, Owner, State, backend::Loss};
use leasehold_testkit::scripted::{Fault, Verb};

use crate::world::{World, always, fail, heal};

#[tokio::test(start_paused = true)]
async fn a_member_that_restarted_empty_joins_in_at_the_next_renewal() {
    let world = World::new(5);
    let client = world.client(&[]);
    let guard = client.lock("a").ttl("10s").acquire().await.unwrap();
    world.restart(1);
    assert_eq!(world.held("a").await, [1, 0, 1, 1, 1]);
    world.eventually("all five have it again", async || world.held("a").await == [1; 5]).await;
    let seen = world.seen(1, "a").await.unwrap();
    assert_eq!(seen.holders[0].id, guard.id());
    assert!(seen.fence >= guard.fence(), "its counter goes on from the others': {seen:?}");
    guard.check().unwrap();
    guard.release().await.unwrap();
    assert_eq!(world.held("a").await, [0; 5]);
}

#[tokio::test(start_paused = true)]
async fn members_that_were_away_when_it_was_acquired_join_in_when_they_are_back() {
    let (world, scripts) = (World::new(5), World::scripts(5));
    fail(&scripts[..1]);
    always(&scripts[1..2], Fault::Err(ErrorKind::Indeterminate));
    let client = world.client(&scripts);
    let guard = client.lock("a").ttl("10s").acquire().await.unwrap();
    assert_eq!(world.held("a").await, [0, 0, 1, 1, 1]);
    heal(&scripts);
    world.eventually("all five have it", async || world.held("a").await == [1; 5]).await;
    // Now it may lose two of the first.
    world.restart(2);
    world.restart(3);
    world.eventually("all five have it again", async || world.held("a").await == [1; 5]).await;
    guard.check().unwrap();
    guard.release().await.unwrap();
    assert_eq!(world.held("a").await, [0; 5]);
}

#[tokio::test(start_paused = true)]
async fn a_mended_member_knows_how_often_the_lock_is_held() {
    let world = World::new(5);
    let client = world.client(&[]);
    let me = Owner::new();
    let lock = client.lock("a").ttl("10s").owner(&me);
    let (outer, inner) = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
    world.restart(0);
    world.eventually("mended", async || world.held("a").await == [1; 5]).await;
    assert_eq!(world.seen(0, "a").await.unwrap().holders[0].count, 2);
    inner.release().await.unwrap();
    outer.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_minority_that_fails_or_is_mute_never_ends_a_lock() {
    let (world, scripts) = (World::new(5), World::scripts(5));
    let client = world.client(&scripts);
    let guard = client.lock("a").ttl("10s").acquire().await.unwrap();
    fail(&scripts[..1]);
    always(&scripts[1..2], Fault::Never);
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(guard.state(), State::Held);
    }
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_majority_that_does_not_answer_brings_doubt_and_then_the_end_of_the_lease() {
    let (world, scripts) = (World::new(5), World::scripts(5));
    let client = world.client(&scripts);
    let guard = client.lock("a").ttl("10s").acquire().await.unwrap();
    for script in &scripts[..3] {
        script.always(Verb::Renew, Fault::Never);
    }
    world.eventually("in doubt", async || guard.state() == State::Doubt).await;
    assert_eq!(guard.lost().await, Loss::Expired);
}

#[tokio::test(start_paused = true)]
async fn a_majority_that_lost_the_lock_ends_it_and_nothing_is_made_anew() {
    let world = World::new(5);
    let client = world.client(&[]);
    let guard = client.lock("a").ttl("10s").acquire().await.unwrap();
    (0..3).for_each(|at| world.restart(at));
    assert_eq!(guard.lost().await, Loss::Gone);
    assert_eq!(world.held("a").await[..3], [0, 0, 0]);
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    world.until_empty("a").await;
}

#[tokio::test(start_paused = true)]
async fn extend_never_recreates() {
    let world = World::new(5);
    let client = world.client(&[]);
    let guard = client.lock("a").ttl("10s").no_renew().acquire().await.unwrap();
    (0..3).for_each(|at| world.restart(at));
    assert_eq!(guard.extend("10s").await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(world.held("a").await, [0, 0, 0, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn without_a_majority_a_renewal_mends_nothing() {
    let (world, scripts) = (World::new(3), World::scripts(3));
    let client = world.client(&scripts);
    let guard = client.lock("a").ttl("10s").no_renew().acquire().await.unwrap();
    world.restart(0);
    fail(&scripts[1..2]);
    // One has it, one lacks it, one does not answer: nobody can tell whether it is still ours.
    assert!(guard.extend("10s").await.is_err());
    assert_eq!(world.held("a").await, [0, 1, 1]);
    drop(guard);
}
