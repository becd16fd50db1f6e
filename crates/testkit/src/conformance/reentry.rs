//! Entering once more what one holds already.

use leasehold_core::{Error, ErrorKind, Operation, Owner, Result};
use tokio::task::JoinSet;

use super::{
    Fixture,
    probe::{Stopwatch, in_vain, is_free, joined, refusal, settled, state, take, until_waiting},
};
use crate::scripted::Script;

/// The same owner enters again, with the same fence; the lock is free when the last guard is gone, in any order.
pub(super) async fn an_owner_enters_again_with_the_same_fence(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("again"));
    let me = Owner::new();
    let lock = client.lock(&name).owner(&me);
    let mut guards = vec![take(&lock).await, take(&lock).await, lock.acquire().await.unwrap()];
    assert!(guards.iter().all(|guard| guard.fence() == guards[0].fence() && guard.id() == guards[0].id()));
    let found = state(&other, &name).await;
    assert_eq!((found.holders.len(), found.holders[0].count), (1, 3));
    for stranger in [client.lock(&name), client.lock(&name).owner(&Owner::new()), other.lock(&name)] {
        assert!(!is_free(&stranger).await);
    }
    let first = guards.remove(0);
    let fence = first.fence();
    first.release().await.unwrap();
    assert_eq!(state(&other, &name).await.holders[0].count, 2);
    drop(guards.pop());
    client.idle().await;
    assert!(!is_free(&other.lock(&name)).await, "one guard is left");
    guards[0].check().unwrap();
    guards.pop().unwrap().release().await.unwrap();
    settled(&client, &name).await;
    let again = take(&lock).await;
    assert!(again.fence() > fence, "a new acquisition has a new fence");
    again.release().await.unwrap();
}

/// A clone is the same owner, also in another task and at the same time.
pub(super) async fn tasks_of_one_owner_enter_together(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("tasks"));
    let holder = take(&other.lock(&name)).await;
    let me = Owner::new();
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let lock = client.lock(&name).owner(&me.clone());
        tasks.spawn(async move { lock.acquire().await.unwrap() });
    }
    until_waiting(&other, &name, 1).await;
    holder.release().await.unwrap();
    let guards = joined(tasks).await;
    assert!(guards.iter().all(|guard| guard.fence() == guards[0].fence()));
    drop(guards);
    settled(&client, &name).await;
}

/// A lock that is lost cannot be entered again: whoever asks learns of the loss.
pub(super) async fn a_lost_lock_is_not_entered_again(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("lost"));
    let me = Owner::new();
    let lock = client.lock(&name).ttl(fixture.brief().await).no_renew().owner(&me);
    let guard = take(&lock).await;
    guard.lost().await;
    let error = refusal(lock.try_acquire().await);
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Lost, Operation::Reenter), "{error}");
    assert_eq!(refusal(guard.release().await).kind(), ErrorKind::Lost);
    // Once nothing of it is left in hand, it may be acquired anew.
    let next = other.lock(&name).acquire().await.unwrap();
    assert!(lock.try_acquire().await.unwrap().is_none());
    next.release().await.unwrap();
    lock.acquire().await.unwrap().release().await.unwrap();
    settled(&client, &name).await;
}

/// An owner that writes may read; when only the reading is left, other readers get in, and no writer.
pub(super) async fn a_writer_may_become_a_reader(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("downgrade"));
    let (me, rwlock) = (Owner::new(), client.rwlock(&name));
    let writer = take(&rwlock.write().owner(&me)).await;
    let reader = take(&rwlock.read().owner(&me)).await;
    assert_eq!(reader.fence(), writer.fence());
    assert!(!is_free(&other.rwlock(&name).read()).await, "it is still written");
    let waits = other.rwlock(&name).read();
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { waits.acquire().await.unwrap() });
    until_waiting(&client, &name, 1).await;
    let watch = Stopwatch::start(&fixture);
    writer.release().await.unwrap();
    joined(waiting).await.pop().unwrap().release().await.unwrap();
    watch.was_prompt();
    assert!(!is_free(&other.rwlock(&name).write()).await, "it is still read");
    reader.check().unwrap();
    reader.release().await.unwrap();
    settled(&client, &name).await;
}

/// An owner that reads cannot write: it would wait for itself.
pub(super) async fn a_reader_cannot_become_a_writer(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("upgrade"));
    let (me, rwlock) = (Owner::new(), client.rwlock(&name));
    let reader = take(&rwlock.read().owner(&me)).await;
    for result in [rwlock.write().owner(&me).acquire().await, client.lock(&name).owner(&me).acquire().await] {
        assert_eq!(refusal(result).kind(), ErrorKind::WouldDeadlock);
    }
    reader.check().unwrap();
    assert!(is_free(&other.rwlock(&name).read()).await, "nothing changed for others");
    reader.release().await.unwrap();
    take(&rwlock.write().owner(&me)).await.release().await.unwrap();
    settled(&client, &name).await;
}

/// An owner belongs to one client and has no permits; nothing is sent for what it cannot have.
pub(super) async fn an_owner_belongs_to_one_client(fixture: Fixture) {
    let script = Script::new();
    let (client, other, name) =
        (fixture.client().await, fixture.scripted(&script).await, fixture.name("belongs"));
    let me = Owner::new();
    let guard = take(&client.lock(&name).owner(&me)).await;
    let config =
        |result: Result<_, Error>| assert_eq!(refusal::<Option<_>>(result).kind(), ErrorKind::Config);
    config(other.lock(&name).owner(&me).try_acquire().await);
    config(other.semaphore(&name, 2).permits(1).owner(&Owner::new()).try_acquire().await);
    assert_eq!(script.requests(), 0);
    guard.release().await.unwrap();
}

/// A wait with a limit keeps to it, and a try does not wait, though another task of the same owner waits.
pub(super) async fn an_owner_that_waits_does_not_hold_up_its_other_tasks(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("limit"));
    let holder = take(&other.lock(&name)).await;
    let me = Owner::new();
    let (waits, lock) = (client.lock(&name).owner(&me), client.lock(&name).owner(&me));
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { waits.acquire().await.unwrap() });
    until_waiting(&other, &name, 1).await;
    assert!(lock.try_acquire().await.unwrap().is_none());
    let error = in_vain(async |wait| lock.clone().wait(wait).acquire().await).await;
    assert_eq!(error.kind(), ErrorKind::Busy);
    holder.release().await.unwrap();
    joined(waiting).await.pop().unwrap().release().await.unwrap();
    settled(&client, &name).await;
}
