//! The memory store passes the suite: on virtual time with faults below its claims and above them, on real time, and
//! refusing everything it can be told to lack.

use std::{future::ready, time::Duration};

use leasehold_core::{
    Client,
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
