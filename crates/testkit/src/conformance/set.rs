//! Several locks, all or nothing.

use leasehold_core::ErrorKind;
use tokio::task::{JoinSet, yield_now};

use super::{
    Fixture,
    probe::{in_vain, is_free, joined, refusal, settled, state, take},
};
use crate::scripted::Script;

/// Sets that name the same locks in opposite orders never wait for each other.
pub(super) async fn opposite_orders_do_not_deadlock(fixture: Fixture) {
    let clients = [fixture.client().await, fixture.client().await];
    let names = [fixture.name("a"), fixture.name("b"), fixture.name("c")];
    let mut tasks = JoinSet::new();
    for task in 0..4 {
        let (client, mut names) = (clients[task % 2].clone(), names.clone());
        if task % 2 == 1 {
            names.reverse();
        }
        tasks.spawn(async move {
            for _ in 0..15 {
                let set = names.iter().fold(client.set(), |set, name| set.lock(name));
                let guard = set.acquire().await.unwrap();
                yield_now().await;
                guard.check().unwrap();
                guard.release().await.unwrap();
            }
        });
    }
    joined(tasks).await;
    for name in &names {
        settled(&clients[0], name).await;
        settled(&clients[1], name).await;
    }
}

/// When one cannot be had, the others are given back, whichever way it was asked.
pub(super) async fn one_that_is_busy_gives_back_the_others(fixture: Fixture) {
    let (client, other) = (fixture.client().await, fixture.client().await);
    let names = [fixture.name("a"), fixture.name("b"), fixture.name("c")];
    for taken in &names {
        let holder = take(&other.lock(taken)).await;
        let set = names.iter().fold(client.set(), |set, name| set.lock(name));
        assert!(set.try_acquire().await.unwrap().is_none());
        let error = in_vain(async |wait| set.clone().wait(wait).acquire().await).await;
        assert_eq!((error.kind(), error.name()), (ErrorKind::Busy, Some(taken.as_str())), "{error}");
        assert_eq!(error.busy().unwrap().holders[0].id, holder.id());
        client.idle().await;
        for free in names.iter().filter(|name| *name != taken) {
            assert!(is_free(&other.lock(free)).await, "{free} is still held");
        }
        holder.release().await.unwrap();
        set.try_acquire().await.unwrap().expect("all are free").release().await.unwrap();
    }
    settled(&client, &names[0]).await;
}

/// When one is refused, the others are given back.
pub(super) async fn one_that_is_refused_gives_back_the_others(fixture: Fixture) {
    let (client, other) = (fixture.client().await, fixture.client().await);
    let names = [fixture.name("a"), fixture.name("z")];
    let permit = take(&other.semaphore(&names[1], 2).permits(1)).await;
    let error = refusal(client.set().lock(&names[0]).lock(&names[1]).acquire().await);
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    settled(&client, &names[0]).await;
    permit.release().await.unwrap();
}

/// Naming a lock twice counts once, and reading and writing one name is writing it.
pub(super) async fn duplicates_collapse(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("twice"));
    for set in [
        client.set().lock(&name).lock(&name).write(&name),
        client.set().read(&name).lock(&name),
        client.set().lock(&name).read(&name),
    ] {
        let guard = set.try_acquire().await.unwrap().expect("it does not wait for itself");
        assert_eq!(guard.guards().len(), 1);
        assert_eq!(state(&other, &name).await.holders.len(), 1);
        assert!(!is_free(&other.rwlock(&name).read()).await, "it is written");
        guard.release().await.unwrap();
    }
    let guard = client.set().read(&name).read(&name).acquire().await.unwrap();
    assert!(is_free(&other.rwlock(&name).read()).await, "it is read");
    guard.release().await.unwrap();
    settled(&client, &name).await;
}

/// A set may mix kinds and clients; each has a fence of its own.
pub(super) async fn kinds_and_clients_mix(fixture: Fixture) {
    let (client, other) = (fixture.client().await, fixture.client().await);
    let [lock, read, permits, theirs] = ["lock", "read", "permits", "theirs"].map(|what| fixture.name(what));
    let set = client.set().permits(&permits, 1, 2).read(&read).lock(&lock).with(other.lock(&theirs));
    let guard = set.acquire().await.unwrap();
    for name in [&lock, &read, &permits, &theirs] {
        let found = state(&client, name).await;
        assert_eq!(guard.fence(name), Some(found.holders[0].fence), "{name}");
    }
    assert_eq!(guard.fence("another"), None);
    assert!(
        is_free(&other.rwlock(&read).read()).await && is_free(&other.semaphore(&permits, 2).permits(1)).await
    );
    assert!(!is_free(&other.lock(&lock)).await && !is_free(&client.lock(&theirs)).await);
    guard.check().unwrap();
    drop(guard);
    for name in [&lock, &read, &permits, &theirs] {
        other.idle().await;
        settled(&client, name).await;
    }
}

/// A set is lost when one of its locks is.
pub(super) async fn the_loss_of_one_is_the_loss_of_the_set(fixture: Fixture) {
    let (client, operator) = (fixture.client().await, fixture.client().await);
    let names = [fixture.name("a"), fixture.name("b")];
    let set = client.set().lock(&names[0]).lock(&names[1]).ttl(fixture.brief().await);
    let guard = set.acquire().await.unwrap();
    let broken = guard.guard(&names[1]).unwrap().id();
    let _: leasehold_core::backend::BreakOutcome =
        operator.break_hold(&names[1], broken, "test").await.unwrap();
    assert!(matches!(guard.lost().await, leasehold_core::backend::Loss::Broken(_)));
    assert_eq!(refusal(guard.check()).kind(), ErrorKind::Lost);
    assert_eq!(refusal(guard.release().await).kind(), ErrorKind::Lost);
    settled(&client, &names[0]).await;
    settled(&client, &names[1]).await;
}

/// A set of nothing, and one that wants a semaphore twice, are refused, and nothing is sent.
pub(super) async fn sets_without_sense_are_refused(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("sense"));
    assert_eq!(refusal(client.set().acquire().await).kind(), ErrorKind::Config);
    let twice = client.set().permits(&name, 1, 3).permits(&name, 1, 3);
    assert_eq!(refusal(twice.acquire().await).kind(), ErrorKind::Config);
    assert_eq!(
        refusal(client.set().permits(&name, 1, 3).lock(&name).acquire().await).kind(),
        ErrorKind::Config
    );
    assert_eq!(refusal(client.set().lock(&name).wait("soon").acquire().await).kind(), ErrorKind::Config);
    assert_eq!(script.requests(), 0);
}
