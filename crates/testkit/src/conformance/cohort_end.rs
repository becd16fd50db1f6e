//! How a cohort ends: with half of its lease, with its loss, with its client, with whoever went away.

use std::time::Duration;

use leasehold_core::{
    ErrorKind, Guard, Lock, State,
    backend::{BreakOutcome, Loss},
};
use tokio::task::{JoinSet, yield_now};

use super::{
    Fixture,
    cancel::{ENOUGH, MANNERS},
    cohort::{in_order, members},
    probe::{Polls, busy, cut_after, eventually, joined, refusal, settled, take},
};
use crate::scripted::{Fault, Script, Verb};

/// A lease of which less than half is left is not passed on: the next has one of its own.
pub(super) async fn half_a_lease_is_not_passed_on(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("half"));
    let brief = fixture.brief().await * 4;
    let lock = client.lock(&name).ttl(brief).no_renew().cohort(8);
    let first = take(&lock).await;
    let id = first.id();
    let tasks = members(&lock, 2).await;
    eventually(async || first.remaining() < brief / 2).await;
    first.release().await.unwrap();
    let held = in_order(tasks).await;
    assert!(held[0].1 != id, "it went back to the store");
    assert_eq!(held[0].1, held[1].1, "with a whole lease it is passed on again");
    settled(&client, &name).await;
}

/// A forced release is told to whoever has the lock by then, and those behind it go on.
pub(super) async fn a_loss_is_told_to_whoever_has_it(fixture: Fixture) {
    let (client, operator, name) = (fixture.client().await, fixture.client().await, fixture.name("lost"));
    let lock = client.lock(&name).ttl(fixture.brief().await).cohort(8);
    let first = take(&lock).await;
    let second = handed(&lock, first).await;
    let tasks = members(&lock, 3).await;
    assert_eq!(operator.break_hold(&name, second.id(), "enough").await.unwrap(), BreakOutcome::Broken);
    assert!(matches!(second.lost().await, Loss::Broken(_)));
    // It is not let go of, and those in line do not wait for that.
    let held = in_order(tasks).await;
    assert!(held.iter().all(|(fence, id)| *fence > second.fence() && *id != second.id()), "{held:?}");
    assert_eq!(refusal(second.release().await).kind(), ErrorKind::Lost);
    settled(&client, &name).await;
}

/// Releases this guard while another waits, which gets the lock.
async fn handed(lock: &Lock, guard: Guard) -> Guard {
    let (id, fence) = (guard.id(), guard.fence());
    let (mut tasks, next) = (JoinSet::new(), lock.clone());
    tasks.spawn(async move { next.acquire().await.unwrap() });
    eventually(async || busy(lock).await.waiters == 1).await;
    guard.release().await.unwrap();
    let next = joined(tasks).await.pop().unwrap();
    assert_eq!((next.id(), next.fence()), (id, fence + 1));
    next
}

/// A lock that is lost is not passed on, also when its holder finds out only as it lets go; a lease in doubt is not
/// passed on either.
pub(super) async fn what_is_lost_is_not_passed_on(fixture: Fixture) {
    let script = Script::new();
    let (client, operator, name) =
        (fixture.scripted(&script).await, fixture.client().await, fixture.name("not-passed"));
    let lock = client.lock(&name).ttl(fixture.brief().await).cohort(8);
    let first = take(&lock).await;
    let lost = (first.fence(), first.id());
    let tasks = members(&lock, 2).await;
    assert_eq!(operator.break_hold(&name, first.id(), "enough").await.unwrap(), BreakOutcome::Broken);
    first.lost().await;
    assert_eq!(refusal(first.release().await).kind(), ErrorKind::Lost);
    let held = in_order(tasks).await;
    assert!(held.iter().all(|(fence, id)| *fence > lost.0 && *id != lost.1), "{held:?} after {lost:?}");

    let doubtful = take(&lock).await;
    let id = doubtful.id();
    let tasks = members(&lock, 1).await;
    script.always(Verb::Renew, Fault::Err(ErrorKind::Unavailable));
    eventually(async || doubtful.state() != State::Held).await;
    drop(doubtful);
    assert!(in_order(tasks).await[0].1 != id);
    script.heal();
    settled(&client, &name).await;
}

/// If the release at the end of a block fails, those in line wait until the store took it, and no longer.
pub(super) async fn a_store_that_fails_at_the_end_of_a_block_costs_time_only(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("fails"));
    let lock = client.lock(&name).cohort(2);
    let first = take(&lock).await;
    let second = handed(&lock, first).await;
    let (fence, id) = (second.fence(), second.id());
    let tasks = members(&lock, 3).await;
    script.next(Verb::Release, [Fault::Err(ErrorKind::Unavailable), Fault::Lost]);
    assert_eq!(refusal(second.release().await).kind(), ErrorKind::Unavailable);
    let held = in_order(tasks).await;
    assert!(held[0].0 > fence && held.iter().all(|member| member.1 != id), "{held:?}");
    settled(&client, &name).await;
}

/// Guards dropped on threads that know no runtime pass the lock on all the same.
pub(super) async fn guards_dropped_on_plain_threads_pass_on(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("threads"));
    let lock = client.lock(&name).cohort(8);
    let mut guard = take(&lock).await;
    for _ in 0..7 {
        let (fence, id) = (guard.fence(), guard.id());
        let (mut tasks, next) = (JoinSet::new(), lock.clone());
        tasks.spawn(async move { next.acquire().await.unwrap() });
        eventually(async || busy(&lock).await.waiters == 1).await;
        std::thread::spawn(move || drop(guard)).join().unwrap();
        guard = joined(tasks).await.pop().unwrap();
        assert_eq!((guard.fence(), guard.id()), (fence + 1, id));
    }
    std::thread::spawn(move || drop(guard)).join().unwrap();
    settled(&client, &name).await;
}

/// A shutdown tells the member that has the lock and all who wait for it; the lock is free then.
pub(super) async fn shutdown_ends_a_cohort_and_tells_its_waiters(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("shutdown"));
    let lock = client.lock(&name).cohort(8);
    let first = take(&lock).await;
    let second = handed(&lock, first).await;
    let mut waiting = JoinSet::new();
    for _ in 0..3 {
        let lock = lock.clone();
        waiting.spawn(async move { refusal(lock.acquire().await).kind() });
    }
    eventually(async || busy(&lock).await.waiters == 3).await;
    let (closed, told) = tokio::join!(client.shutdown("20s"), async {
        let loss = second.lost().await;
        // Let go of while the client is closing: there is nobody to pass it on to.
        let fence = second.fence();
        assert_eq!(refusal(second.release().await).kind(), ErrorKind::Lost);
        (loss, fence)
    });
    closed.unwrap();
    assert_eq!(told.0, Loss::Shutdown);
    assert_eq!(joined(waiting).await, [ErrorKind::Closed; 3]);
    let next = take(&other.lock(&name)).await;
    assert!(next.fence() > told.1);
    next.release().await.unwrap();
    let stats = client.stats();
    assert_eq!((stats.held, stats.waiting, stats.tidying), (0, 0, 0));
}

/// One who is handed the lock may go away at any point: then the next in line has it, and in the end the store.
pub(super) async fn cut_anywhere_it_is_passed_on_or_given_back(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("cut"));
    for manner in MANNERS {
        manner.play(&script);
        let mut count = 0;
        loop {
            let ended = cut_one(&client.lock(&name).cohort(5), count, manner.polls).await;
            settled(&client, &name).await;
            if ended || (manner.polls == Polls::Eager && count > ENOUGH) {
                break;
            }
            count += 1 + count / 16;
        }
    }
}

/// Somebody holds the lock, one asks and is cut short, another waits behind; the holder leaves meanwhile. Whether the
/// one came through.
async fn cut_one(lock: &Lock, count: usize, polls: Polls) -> bool {
    let holder = lock.acquire().await.unwrap();
    let fence = holder.fence();
    let behind = async {
        yield_now().await;
        let guard = lock.acquire().await.unwrap();
        assert!(guard.fence() > fence);
        guard.release().await.unwrap();
    };
    let leaves = async {
        for _ in 0..count % 11 {
            yield_now().await;
        }
        if count.is_multiple_of(2) {
            holder.release().await.unwrap();
        } else {
            drop(holder);
        }
    };
    let cut = async { cut_after(count, polls, lock.acquire()).await.transpose().unwrap().is_some() };
    let (ended, (), ()) = tokio::join!(cut, leaves, behind);
    ended
}

/// A lock that is lost between two members is held by neither: the one it was meant for asks the store.
pub(super) async fn a_lock_lost_on_its_way_is_not_held(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("on-its-way"));
    let lock = client.lock(&name).cohort(8);
    let first = take(&lock).await;
    let (fence, id) = (first.fence(), first.id());
    let tasks = members(&lock, 2).await;
    drop(first);
    // Nobody else has run since.
    fixture.time().suspend(Duration::from_secs(60));
    let held = in_order(tasks).await;
    assert!(held[0].0 > fence && held.iter().all(|member| member.1 != id), "{held:?} after {fence} of {id}");
    settled(&client, &name).await;
}
