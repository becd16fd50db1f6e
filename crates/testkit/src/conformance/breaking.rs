//! Forced release: exactly that acquisition, and its holder is told by whom and why.

use leasehold_core::{
    ErrorKind,
    backend::{BreakOutcome, Loss, Mode},
};
use tokio::task::JoinSet;

use super::{
    Fixture,
    loss::assert_lost,
    probe::{Stopwatch, ghost, is_free, joined, permits, refusal, settled, take, until_waiting},
};

/// The holder is told, those who wait are woken, and what the old holder does later touches nobody.
pub(super) async fn a_broken_lock_is_told_and_passes_on(fixture: Fixture) {
    let (client, operator, name) = (fixture.client().await, fixture.client().await, fixture.name("broken"));
    let guard = take(&client.lock(&name).ttl(fixture.brief().await)).await;
    let waits = operator.lock(&name);
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { waits.acquire().await.unwrap() });
    until_waiting(&operator, &name, 1).await;
    assert_eq!(operator.break_hold(&name, guard.id(), "it hangs").await.unwrap(), BreakOutcome::Broken);
    let next = joined(waiting).await.pop().unwrap();
    // In ZooKeeper those who wait have their fences from when they came, so a break cannot take one in between.
    let taken = u64::from(client.info().scheme != "zookeeper");
    assert!(next.fence() > guard.fence() + taken, "the fence moved on by the break itself, too");
    let loss = guard.lost().await;
    let Loss::Broken(broken) = &loss else { panic!("{loss:?}") };
    assert_eq!(&*broken.why, "it hangs");
    let who = operator.who();
    assert!(broken.by.contains(&*who.user) && broken.by.contains(&*who.host), "{broken:?}");
    assert_lost(&guard, &loss);
    assert_eq!(refusal(guard.release().await).kind(), ErrorKind::Lost);
    next.check().unwrap();
    assert!(!is_free(&client.lock(&name)).await);
    next.release().await.unwrap();
    settled(&client, &name).await;
    settled(&operator, &name).await;
}

/// Those who wait are woken by a break, and a release that finds its lock broken says so, by whom and why.
pub(super) async fn a_release_learns_of_the_break(fixture: Fixture) {
    let (client, operator, name) = (fixture.client().await, fixture.client().await, fixture.name("learns"));
    let guard = take(&client.lock(&name)).await;
    let waits = operator.lock(&name);
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { waits.acquire().await.unwrap() });
    until_waiting(&operator, &name, 1).await;
    let watch = Stopwatch::start(&fixture);
    assert_eq!(operator.break_hold(&name, guard.id(), "maintenance").await.unwrap(), BreakOutcome::Broken);
    let next = joined(waiting).await.pop().unwrap();
    watch.was_prompt();
    let error = refusal(guard.release().await);
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(matches!(error.loss(), Some(Loss::Broken(broken)) if &*broken.why == "maintenance"), "{error}");
    assert!(error.to_string().contains("maintenance"), "{error}");
    next.release().await.unwrap();
    settled(&client, &name).await;
}

/// An acquisition that does not hold the name is not broken, and nobody else's is instead.
pub(super) async fn only_the_named_acquisition_is_broken(fixture: Fixture) {
    let (client, operator, name) = (fixture.client().await, fixture.client().await, fixture.name("named"));
    let old = take(&client.lock(&name)).await;
    let gone = old.id();
    assert_eq!(operator.break_hold(&fixture.name("free"), gone, "x").await.unwrap(), BreakOutcome::NotHeld);
    old.release().await.unwrap();
    assert_eq!(operator.break_hold(&name, gone, "x").await.unwrap(), BreakOutcome::NotHeld);
    let guard = take(&client.lock(&name)).await;
    assert_eq!(operator.break_hold(&name, gone, "x").await.unwrap(), BreakOutcome::NotHeld);
    guard.extend("30s").await.unwrap();
    guard.check().unwrap();
    guard.release().await.unwrap();
    settled(&client, &name).await;
}

/// One who waits holds nothing that could be broken.
pub(super) async fn one_who_waits_is_not_broken(fixture: Fixture) {
    let (client, operator, name) = (fixture.client().await, fixture.client().await, fixture.name("waits"));
    let guard = take(&client.lock(&name)).await;
    let waits = client.lock(&name);
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { waits.acquire().await.unwrap() });
    until_waiting(&operator, &name, 1).await;
    let id = super::probe::state(&operator, &name).await.waiters[0].id;
    assert_eq!(operator.break_hold(&name, id, "x").await.unwrap(), BreakOutcome::NotHeld);
    guard.release().await.unwrap();
    joined(waiting).await.pop().unwrap().release().await.unwrap();
    settled(&client, &name).await;
}

/// One reader is broken, and the others go on.
pub(super) async fn one_reader_is_broken_and_the_others_go_on(fixture: Fixture) {
    let (client, operator, name) = (fixture.client().await, fixture.client().await, fixture.name("reader"));
    let broken = take(&client.rwlock(&name).read()).await;
    let other = take(&client.rwlock(&name).read()).await;
    assert_eq!(operator.break_hold(&name, broken.id(), "x").await.unwrap(), BreakOutcome::Broken);
    assert_eq!(refusal(broken.extend("30s").await).kind(), ErrorKind::Lost);
    other.extend("30s").await.unwrap();
    assert!(!is_free(&operator.lock(&name)).await);
    other.release().await.unwrap();
    assert!(is_free(&operator.lock(&name)).await);
    drop(broken);
    settled(&client, &name).await;
}

/// The permits of a broken holder come back at once, also when it is long dead.
pub(super) async fn broken_permits_come_back_at_once(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("permits"));
    let dead = ghost(&fixture, &name, permits(2, 2), std::time::Duration::from_secs(3600)).await;
    assert!(!is_free(&client.semaphore(&name, 2).permits(1)).await);
    assert_eq!(client.break_hold(&name, dead.id, "dead").await.unwrap(), BreakOutcome::Broken);
    assert!(is_free(&client.semaphore(&name, 2).permits(2)).await);
}

/// A hold entered twice is broken as a whole.
pub(super) async fn a_hold_entered_twice_is_broken_as_a_whole(fixture: Fixture) {
    let (client, operator, name) = (fixture.client().await, fixture.client().await, fixture.name("twice"));
    let me = leasehold_core::Owner::new();
    let lock = client.lock(&name).owner(&me).ttl(fixture.brief().await);
    let (outer, inner) = (take(&lock).await, take(&lock).await);
    assert_eq!(operator.break_hold(&name, outer.id(), "x").await.unwrap(), BreakOutcome::Broken);
    assert!(matches!(inner.lost().await, Loss::Broken(_)));
    assert!(matches!(outer.lost().await, Loss::Broken(_)));
    assert_eq!(refusal(lock.try_acquire().await).kind(), ErrorKind::Lost);
    let next = take(&operator.lock(&name)).await;
    drop((outer, inner));
    client.idle().await;
    assert_eq!(super::probe::state(&operator, &name).await.holders[0].mode, Mode::Exclusive);
    next.release().await.unwrap();
    settled(&client, &name).await;
}
