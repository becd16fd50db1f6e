//! The memory store passes the suite: on virtual time with faults below its claims and above them, on real time, and
//! refusing everything it can be told to lack.

use std::{future::ready, time::Duration};

use leasehold_core::{
    Client, Owner,
    backend::{Capabilities, Memory},
    time::Clock,
};
use leasehold_testkit::{
    conformance::Fixture,
    scripted::{Script, Scripted},
};

leasehold_testkit::conformance!(memory, paused, {
    let clock = Clock::test();
    let store = Memory::with_clock(clock.clone());
    Fixture::records(move || ready(store.clone())).clock(clock)
});

leasehold_testkit::conformance!(memory_with_faults_above, paused, {
    let clock = Clock::test();
    let store = Memory::with_clock(clock.clone());
    Fixture::backends(move || ready(store.clone())).clock(clock)
});

leasehold_testkit::conformance!(memory_in_real_time, real, {
    let store = Memory::new();
    Fixture::records(move || ready(store.clone()))
});

leasehold_testkit::conformance!(a_store_that_can_do_little, paused, {
    let clock = Clock::test();
    let store = Memory::with_clock(clock.clone());
    let mut can = Capabilities::default();
    (can.shared, can.permits, can.fair, can.latch, can.detached, can.cohort) = Default::default();
    can.min_ttl = Duration::from_secs(2);
    let open = move || ready(Scripted::new(store.clone(), Script::new()).with_capabilities(can));
    Fixture::backends(open).clock(clock)
});

/// Two memory stores have the same address and are not the same store.
#[tokio::test]
async fn a_set_over_two_memory_stores_holds_both() {
    let (here, there) = (Client::new(Memory::new()), Client::new(Memory::new()));
    let guard = here.set().lock("x").with(there.lock("x")).acquire().await.unwrap();
    assert_eq!(guard.guards().len(), 2);
    assert!(here.lock("x").try_acquire().await.unwrap().is_none());
    assert!(there.lock("x").try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_free_lock_is_had_on_the_spot_and_a_busy_one_leaves_no_trace() {
    let client = Client::new(Memory::new());
    let lock = client.lock("x").wait("1h");
    let guard = lock.try_now().unwrap();
    assert_eq!(client.stats().held, 1);
    assert!(lock.try_now().is_none());
    assert_eq!(client.stats().tidying, 0);
    let state = client.inspect("x").await.unwrap().unwrap();
    assert_eq!((state.holders.len(), state.waiters.len()), (1, 0));
    let fence = guard.fence();
    guard.release().await.unwrap();
    assert!(lock.try_now().unwrap().fence() > fence);
}

#[tokio::test]
async fn what_is_not_to_be_had_on_the_spot_is_left_to_those_who_say_why() {
    let client = Client::new(Memory::new());
    assert!(client.lock("x").wait("soon").try_now().is_none());
    assert!(client.lock("").try_now().is_none());
    assert!(client.lock("x").owner(&Owner::new()).try_now().is_none());
    let remote = Scripted::new(Memory::new(), Script::new()).with_capabilities(Capabilities::default());
    let elsewhere = Client::new(remote);
    assert!(elsewhere.lock("x").try_now().is_none());
    drop(client.lock("x").try_now().unwrap());
    client.shutdown("1s").await.unwrap();
    assert!(client.lock("x").try_now().is_none());
}

/// More names than the store keeps in mind once nobody uses them.
#[tokio::test]
async fn a_name_that_was_forgotten_has_a_greater_fence_than_before() {
    let client = Client::new(Memory::new());
    let held = client.lock("held").acquire().await.unwrap();
    let mut last = [0; 200];
    for _ in 0..3 {
        for (number, last) in last.iter_mut().enumerate() {
            let guard = client.lock(&format!("order:{number}")).acquire().await.unwrap();
            assert!(guard.fence() > *last, "order:{number}: {} after {last}", guard.fence());
            *last = guard.fence();
        }
    }
    assert!(client.lock("held").try_acquire().await.unwrap().is_none(), "what is held is not forgotten");
    drop(held);
    assert!(client.list("", None, 1000).await.unwrap().locks.is_empty());
}
