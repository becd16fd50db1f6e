//! The engine against stores that are slow, mute or down: each case is named after what a user saw.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

use std::time::Duration;

use leasehold_core::{
    Client, ErrorKind, Guard, Owner, Result,
    backend::{Memory, Recorded},
    time::Clock,
};
use leasehold_testkit::scripted::{Fault, Script, ScriptedRecords, Verb};
use tokio::task::JoinSet;

/// One memory store on a clock that only the test moves, a client that plays a script, and one that does not.
struct World {
    clock: Clock,
    script: Script,
    client: Client,
    other: Client,
}

impl World {
    fn new() -> Self {
        let (clock, script) = (Clock::test(), Script::new());
        let store: Recorded<Memory> = Memory::with_clock(clock.clone());
        let scripted = ScriptedRecords::new(store.clone(), script.clone());
        let client = Client::builder(scripted).clock(clock.clone()).build();
        let other = Client::builder(store).clock(clock.clone()).build();
        Self { clock, script, client, other }
    }

    fn seconds_since(&self, start: leasehold_core::time::Instant) -> u64 {
        start.until(self.clock.now()).as_secs()
    }
}

/// Acquires in a task of its own, so that the test can go on meanwhile.
fn acquiring(client: &Client, name: &str) -> JoinSet<Result<Guard>> {
    let lock = client.lock(name);
    JoinSet::from_iter([async move { lock.acquire().await }])
}

async fn one(mut tasks: JoinSet<Result<Guard>>) -> Result<Guard> {
    tasks.join_next().await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_lock_won_while_the_client_is_shut_down_is_not_held() {
    let world = World::new();
    world.script.next(Verb::Attempt, [Fault::Slow(Duration::from_secs(2))]);
    let tasks = acquiring(&world.client, "a");
    tokio::task::yield_now().await;
    world.client.shutdown("10s").await.unwrap();
    assert_eq!(one(tasks).await.unwrap_err().kind(), ErrorKind::Closed);
    assert!(world.other.lock("a").try_acquire().await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn nobody_is_handed_a_lock_whose_lease_was_over_before_the_answer_came() {
    let world = World::new();
    world.script.next(Verb::Attempt, [Fault::Slow(Duration::from_secs(11))]);
    let error = world.client.lock("a").ttl("10s").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("longer ttl"), "{error}");
    // Whoever has patience asks again, and holds what it was told.
    world.script.next(Verb::Attempt, [Fault::Slow(Duration::from_secs(11))]);
    let guard = world.client.lock("a").ttl("10s").acquire().await.unwrap();
    guard.check().unwrap();
    guard.release().await.unwrap();
    world.client.idle().await;
    assert!(world.other.lock("a").try_acquire().await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_in_time_though_the_store_is_mute() {
    let world = World::new();
    world.script.always(Verb::Attempt, Fault::Never);
    let start = world.clock.now();
    let error = world.client.lock("a").wait("3s").acquire().await.unwrap_err();
    assert_eq!((error.kind(), world.seconds_since(start)), (ErrorKind::Unavailable, 3));
}

#[tokio::test(start_paused = true)]
async fn entering_again_ends_in_time_though_the_store_is_mute() {
    let (world, me) = (World::new(), Owner::new());
    let lock = world.client.lock("a").ttl("10s").owner(&me);
    let outer = lock.acquire().await.unwrap();
    world.script.always(Verb::Recount, Fault::Never);
    let start = world.clock.now();
    let error = lock.clone().wait("3s").acquire().await.unwrap_err();
    assert_eq!((error.kind(), world.seconds_since(start)), (ErrorKind::Unavailable, 3));
    outer.check().unwrap();
    world.script.always(Verb::Renew, Fault::Err(ErrorKind::Unavailable));
    assert_eq!(
        lock.acquire().await.unwrap_err().kind(),
        ErrorKind::Lost,
        "it waits no longer than the lease"
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_goes_mute_while_we_wait_does_not_keep_us() {
    let world = World::new();
    let _held = world.other.lock("a").acquire().await.unwrap();
    world.script.next(Verb::Attempt, [Fault::Ok]).always(Verb::Attempt, Fault::Never);
    let start = world.clock.now();
    assert!(world.client.lock("a").wait("3s").acquire().await.is_err());
    assert_eq!(world.seconds_since(start), 3);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_for_a_mute_store_are_told_of_a_shutdown() {
    let world = World::new();
    let _held = world.other.lock("a").acquire().await.unwrap();
    world.script.next(Verb::Attempt, [Fault::Ok]).always(Verb::Attempt, Fault::Never);
    let tasks = acquiring(&world.client, "a");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.client.shutdown("2s").await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(one(tasks).await.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test(start_paused = true)]
async fn when_the_store_is_down_all_who_wait_are_told_together() {
    let world = World::new();
    let _held = world.other.lock("a").acquire().await.unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..6 {
        let lock = world.client.lock("a").ttl("10s");
        tasks.spawn(async move { lock.acquire().await });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.script.always(Verb::Attempt, Fault::Err(ErrorKind::Unavailable));
    let start = world.clock.now();
    while let Some(told) = tasks.join_next().await {
        assert_eq!(told.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
    }
    let seconds = world.seconds_since(start);
    assert!(seconds < 20, "the last was told after {seconds} s; one lease is 10 s");
}

#[tokio::test(start_paused = true)]
async fn a_try_behind_others_does_not_call_a_dead_store_busy() {
    let world = World::new();
    let _held = world.other.lock("a").acquire().await.unwrap();
    let waiting = acquiring(&world.client, "a");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(world.client.lock("a").try_acquire().await.unwrap().is_none(), "now it is busy");
    world.script.always(Verb::Attempt, Fault::Err(ErrorKind::Unavailable));
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(world.client.lock("a").try_acquire().await.unwrap_err().kind(), ErrorKind::Unavailable);
    drop(waiting);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_ensured_is_not_said_to_be() {
    let world = World::new();
    let guard = world.client.lock("a").ttl("3s").max_hold("5s").acquire().await.unwrap();
    guard.ensure("2s").await.unwrap();
    assert_eq!(guard.ensure("60s").await.unwrap_err().kind(), ErrorKind::Config);
    assert_eq!(guard.ensure(Duration::MAX).await.unwrap_err().kind(), ErrorKind::Config);
}

#[tokio::test(start_paused = true)]
async fn a_set_that_lost_a_member_on_the_way_is_not_acquired() {
    let world = World::new();
    let held = world.other.lock("b").acquire().await.unwrap();
    let set = world.client.set().lock("a").lock("b");
    let mut tasks = JoinSet::from_iter([async move { set.acquire().await }]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let first = world.other.inspect("a").await.unwrap().unwrap().holders[0].id;
    assert_eq!(
        world.other.break_hold("a", first, "maintenance").await.unwrap(),
        leasehold_core::backend::BreakOutcome::Broken
    );
    tokio::time::sleep(Duration::from_secs(15)).await;
    held.release().await.unwrap();
    let error = tasks.join_next().await.unwrap().unwrap().unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::Lost, Some("a")));
}

#[test]
fn a_lock_whose_runtime_is_gone_is_lost_and_its_client_grants_no_more() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (client, guard) = runtime.block_on(async {
        let client = Client::new(Memory::new());
        let guard = client.lock("a").acquire().await.unwrap();
        tokio::task::yield_now().await;
        (client, guard)
    });
    drop(runtime);
    assert_eq!(guard.check().unwrap_err().kind(), ErrorKind::Lost, "nothing renews it any more");
    let elsewhere = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let refused = elsewhere.block_on(client.lock("b").acquire()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_cohort_costs_one_pair_of_requests_for_all_its_members() {
    let world = World::new();
    let lock = world.client.lock("a").cohort(16);
    let first = lock.acquire().await.unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..63 {
        let lock = lock.clone();
        tasks.spawn(async move { lock.acquire().await.unwrap().release().await.unwrap() });
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    first.release().await.unwrap();
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let calls = [Verb::Attempt, Verb::Release].map(|verb| world.script.calls(verb));
    assert_eq!((calls, world.script.requests()), ([4, 4], 8));
}

#[tokio::test(start_paused = true)]
async fn of_a_thousand_who_ask_at_once_one_asks_the_store_and_one_waits_there() {
    let world = World::new();
    let held = world.other.lock("a").acquire().await.unwrap();
    let slow = || Fault::Slow(Duration::from_secs(1));
    world.script.next(Verb::Attempt, [slow(), slow()]);
    let mut tasks = JoinSet::new();
    for _ in 0..1000 {
        let lock = world.client.lock("a");
        tasks.spawn(async move { lock.acquire().await.unwrap().release().await.unwrap() });
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(world.script.calls(Verb::Attempt), 2);
    held.release().await.unwrap();
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_a_little_asks_for_itself_and_hears_that_it_is_busy() {
    let world = World::new();
    let held = world.other.lock("a").acquire().await.unwrap();
    let slow = || Fault::Slow(Duration::from_secs(1));
    world.script.next(Verb::Attempt, [slow(), slow()]);
    let mut patient = JoinSet::new();
    for _ in 0..3 {
        let lock = world.client.lock("a");
        patient.spawn(async move { lock.acquire().await.unwrap().release().await.unwrap() });
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let refused = world.client.lock("a").wait(Duration::from_millis(1)).try_acquire().await.unwrap();
    assert!(refused.is_none());
    held.release().await.unwrap();
    while let Some(done) = patient.join_next().await {
        done.unwrap();
    }
}
