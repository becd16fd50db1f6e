//! A lock that is lost: its holder is told, by every store.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use leasehold_core::{
    ErrorKind, Guard, Key, Operation, State,
    backend::{BreakOutcome, Loss, Mode, Release},
};

use super::{
    Fixture,
    probe::{is_free, refusal, settled, take},
};
use crate::scripted::{Script, Verb};

/// Everything a guard can say says that it is lost.
#[track_caller]
pub(super) fn assert_lost(guard: &Guard, loss: &Loss) {
    assert_eq!(guard.state(), State::Lost);
    let error = refusal(guard.check());
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Lost, Operation::Check));
    assert_eq!(error.loss(), Some(loss));
    assert_eq!(error.name(), Some(guard.name()));
    assert!(guard.remaining().is_zero());
}

/// A lock that is renewed is held for as long as its guard lives, many leases long.
pub(super) async fn a_lock_outlives_its_lease_while_it_is_renewed(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("renewed"));
    let guard = take(&client.lock(&name).ttl(fixture.brief().await)).await;
    for _ in 0..6 {
        let known = guard.deadline();
        let deadline = guard.renewed(known).await;
        assert!(deadline > known);
        guard.check().unwrap();
        assert!(!is_free(&other.lock(&name)).await);
    }
    guard.release().await.unwrap();
    settled(&client, &name).await;
}

/// A lock that is not renewed is lost when its lease ends, and its holder knows before anybody else can have it.
pub(super) async fn an_unrenewed_lock_expires(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("expires"));
    let guard = take(&client.lock(&name).ttl(fixture.brief().await).no_renew()).await;
    assert_eq!(guard.state(), State::Held);
    let next = other.lock(&name).acquire().await.unwrap();
    assert_lost(&guard, &Loss::Expired);
    assert_eq!(guard.lost().await, Loss::Expired);
    assert!(next.fence() > guard.fence());
    let error = refusal(guard.extend("30s").await);
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Lost, Operation::Renew));
    let error = refusal(guard.release().await);
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Lost, Operation::Release));
    next.check().unwrap();
    assert!(!is_free(&client.lock(&name)).await, "a late release touches nobody else's lock");
    next.release().await.unwrap();
    settled(&client, &name).await;
}

/// Renewal stops at `max_hold`.
pub(super) async fn max_hold_ends_a_lock(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("max-hold"));
    let brief = fixture.brief().await;
    let guard = take(&client.lock(&name).ttl(brief).max_hold(brief * 2)).await;
    let start = fixture.time().now();
    assert_eq!(guard.lost().await, Loss::MaxHold);
    assert_lost(&guard, &Loss::MaxHold);
    assert!(start.until(fixture.time().now()) >= brief, "it was renewed before that");
    other.lock(&name).acquire().await.unwrap().release().await.unwrap();
    // A lease longer than max_hold is cut to it.
    let guard = take(&client.lock(&name).ttl("1h").max_hold(brief)).await;
    assert!(guard.remaining() <= brief);
    assert_eq!(guard.lost().await, Loss::MaxHold);
    drop(guard);
    settled(&client, &name).await;
}

/// A lock the store no longer knows is lost at the next renewal.
pub(super) async fn a_lock_gone_from_the_store_is_told(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("gone"));
    let backend = fixture.backend(&Script::new()).await;
    let guard = take(&client.lock(&name).ttl(fixture.brief().await)).await;
    let key = Key::new("", &name).unwrap();
    assert_eq!(backend.release(&key, guard.id(), Mode::Exclusive).await.unwrap(), Release::Released);
    assert_eq!(guard.lost().await, Loss::Gone);
    assert_lost(&guard, &Loss::Gone);
    drop(guard);
    settled(&client, &name).await;
}

/// Releasing what the store no longer knows says that it was lost.
pub(super) async fn releasing_what_is_gone_says_so(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("release-gone"));
    let backend = fixture.backend(&Script::new()).await;
    let guard = take(&client.lock(&name)).await;
    let key = Key::new("", &name).unwrap();
    assert_eq!(backend.release(&key, guard.id(), Mode::Exclusive).await.unwrap(), Release::Released);
    let error = refusal(guard.release().await);
    assert_eq!((error.kind(), error.loss()), (ErrorKind::Lost, Some(&Loss::Gone)));
    settled(&client, &name).await;
}

/// An extension moves the deadline at once; `ensure` asks the store only when it must.
pub(super) async fn extend_and_ensure_prolong_a_lease(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("extend"));
    let guard = take(&client.lock(&name).ttl("20s").no_renew()).await;
    let before = guard.deadline();
    guard.extend("40s").await.unwrap();
    assert!(guard.deadline() > before && guard.remaining().as_secs() >= 35);
    guard.extend("20s").await.unwrap();
    assert!(guard.remaining().as_secs() >= 30, "a lease is never shortened");
    let asked = script.calls(Verb::Renew);
    guard.ensure("10s").await.unwrap();
    assert_eq!(script.calls(Verb::Renew), asked, "there was enough left");
    guard.ensure("60s").await.unwrap();
    assert_eq!(script.calls(Verb::Renew), asked + 1);
    assert!(guard.remaining().as_secs() >= 55);
    for span in ["soon", "0s", "100000 days"] {
        assert_eq!(refusal(guard.extend(span).await).kind(), ErrorKind::Config, "{span}");
    }
    assert_eq!(script.calls(Verb::Renew), asked + 1, "what is refused is not sent");
    guard.release().await.unwrap();
    settled(&client, &name).await;
}

/// A loss cancels the work of a scope where it stands.
pub(super) async fn a_loss_cancels_the_work_of_a_scope(fixture: Fixture) {
    let (client, operator, name) = (fixture.client().await, fixture.client().await, fixture.name("scope"));
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = SetOnDrop(dropped.clone());
    let lock = client.lock(&name).ttl(fixture.brief().await);
    let work = lock.scope(async |held| {
        let _flag = flag;
        let broken = operator.break_hold(&name, held.id(), "enough").await?;
        assert_eq!(broken, BreakOutcome::Broken);
        std::future::pending::<()>().await;
        Ok::<(), leasehold_core::Error>(())
    });
    let error = refusal(work.await);
    assert_eq!((error.kind(), error.name()), (ErrorKind::Lost, Some(&*name)));
    assert!(matches!(error.loss(), Some(Loss::Broken(_))));
    assert!(dropped.load(Ordering::SeqCst), "the work was dropped");
    settled(&client, &name).await;
}

struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
