//! The blocking front: outside of a runtime, within each kind of one, on other threads, and whole.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc,
    thread,
    time::Duration,
};

use leasehold::{
    Client, Error, ErrorKind, Owner, Turn,
    backend::{BreakOutcome, Memory},
    blocking,
};
use leasehold_testkit::scripted::{Fault, Script, Scripted, Verb};
use tokio::runtime::Builder;

/// Longer than any test takes: whoever waits that long waits for what never comes.
const LONG: &str = "60s";

fn memory() -> blocking::Client {
    blocking::connect("memory:").unwrap()
}

#[test]
fn a_job_runs_on_the_thread_that_runs_it() {
    let (locks, here) = (memory(), thread::current().id());
    let job = locks.job("report").at_most("1m").at_least("1h");
    let turn = job.run_once(|run| {
        run.check()?;
        // It may wait for locks of its own.
        locks.lock("other").acquire()?.release()?;
        Ok::<_, Error>(thread::current().id())
    });
    assert!(matches!(turn, Ok(Turn::Ran(thread)) if thread == here), "{turn:?}");
    let turn = job.run_once(|_| Ok::<_, Error>(()));
    assert!(matches!(turn, Ok(Turn::Resting(_))), "{turn:?}");
    assert_eq!(job.state().unwrap().unwrap().totals.done, 1);
    assert_eq!(locks.jobs("", None, 10).unwrap().jobs.len(), 1);
    job.pause("enough").unwrap();
    assert!(job.resume().unwrap().is_some());
    let (ticking, seen) = (locks.job("tick").schedule("* * * * * *").at_most("1m"), mpsc::channel());
    let ended = ticking.run(|run| {
        seen.0.send(run.slot()).unwrap();
        // It is told so by its next look, and ends.
        thread::scope(|scope| scope.spawn(|| locks.shutdown("0s")).join().unwrap())
    });
    ended.unwrap();
    assert_eq!(seen.1.try_iter().count(), 1);
}

#[test]
fn work_that_waits_may_run_on_the_thread_of_any_runtime() {
    let work = || {
        let locks = memory();
        let job = locks.job("report").at_most("1m");
        let waits = || locks.lock("other").wait(LONG).acquire().and_then(blocking::Guard::release);
        let turn = job.run_once(|_| waits());
        assert!(matches!(turn, Ok(Turn::Ran(()))), "{turn:?}");
        let panicked =
            catch_unwind(AssertUnwindSafe(|| job.run_once::<(), Error>(|_| panic!("in the work"))));
        assert!(panicked.is_err());
        waits().unwrap();
    };
    Builder::new_current_thread().build().unwrap().block_on(async { work() });
    let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    runtime.block_on(async { runtime.spawn(async move { work() }).await.unwrap() });
    runtime.block_on(async { work() });
}

#[test]
fn every_primitive_works_without_a_runtime() {
    let locks = memory();
    let guard = locks.lock("a").ttl("10s").label("test").acquire().unwrap();
    assert!(locks.lock("a").try_acquire().unwrap().is_none());
    assert!(matches!(locks.lock("a").attempt().unwrap(), blocking::Outcome::Busy(_)));
    guard.extend("20s").unwrap();
    guard.ensure("15s").unwrap();
    guard.check().unwrap();
    guard.release().unwrap();
    let me = Owner::new();
    let outer = locks.lock("a").owner(&me).acquire().unwrap();
    assert_eq!(locks.lock("a").owner(&me).acquire().unwrap().fence(), outer.fence());

    let (one, two) =
        (locks.rwlock("r").read().acquire().unwrap(), locks.rwlock("r").read().acquire().unwrap());
    assert!(locks.rwlock("r").write().try_acquire().unwrap().is_none());
    drop((one, two));
    let permits = locks.semaphore("s", 2).permits(2).acquire().unwrap();
    assert!(locks.semaphore("s", 2).permits(1).try_acquire().unwrap().is_none());
    drop(permits);
    let set = locks.set().lock("x").with(locks.lock("y").fair()).wait(LONG).acquire().unwrap();
    assert_eq!(set.guard("x").unwrap().fence(), set.fence("x").unwrap());
    assert_eq!(set.guards().count(), 2);
    set.release().unwrap();
    let ticket = locks.lock("t").ticket().unwrap();
    locks.renew_ticket(&ticket, "10s").unwrap();
    locks.release_ticket(&ticket).unwrap();
    let limiter = locks.rate_limiter("l");
    limiter.set_rate(2, "1h").unwrap();
    assert!(limiter.try_acquire(2).unwrap() && !limiter.try_acquire(1).unwrap());
    locks.shutdown(LONG).unwrap();
    assert_eq!(locks.lock("a").acquire().unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn one_thread_waits_until_another_counts_down() {
    let locks = memory();
    let latch = locks.latch("ready");
    latch.arm(2).unwrap();
    thread::scope(|scope| {
        let waits = scope.spawn(|| latch.wait_for(LONG).unwrap());
        scope.spawn(|| latch.count_down().unwrap());
        scope.spawn(|| latch.count_down().unwrap());
        assert!(waits.join().unwrap());
    });
    assert_eq!(latch.count().unwrap(), 0);
}

#[test]
fn a_leader_is_seen_and_resigns() {
    let locks = memory();
    let election = locks.election("e").every("1ms");
    let mut leaders = election.observe();
    assert!(leaders.next().unwrap().unwrap().is_none());
    let fence = election
        .lead("here", |leadership| {
            assert_eq!(leaders.next().unwrap()?.unwrap().text(), "here");
            leadership.proclaim("there")?;
            assert_eq!(leadership.guard().fence(), leadership.fence());
            Ok::<_, Error>(leadership.fence())
        })
        .unwrap();
    assert!(fence > 0 && election.leader().unwrap().is_none());
}

#[test]
fn ids_are_made_on_any_thread() {
    let locks = memory();
    let ids = locks.ids("orders").claim().unwrap();
    let made = std::thread::scope(|scope| {
        let make = || (0..1000).map(|_| ids.next().unwrap()).collect::<Vec<_>>();
        let (one, other) = (scope.spawn(make), scope.spawn(make));
        [one.join().unwrap(), other.join().unwrap()].concat()
    });
    let distinct: std::collections::BTreeSet<_> = made.iter().collect();
    assert_eq!(distinct.len(), 2000);
    assert!(made.iter().all(|id| id.machine() == ids.machine()));
    ids.release().unwrap();
}

#[test]
fn a_scope_releases_whatever_its_work_does() {
    let locks = memory();
    let lock = locks.lock("a").wait(LONG);
    assert_eq!(lock.scope(|held| Ok::<_, Error>(held.fence())).unwrap(), 1);
    let failed =
        lock.scope(|_| Err::<(), _>(Error::new(ErrorKind::Internal, leasehold::Operation::Check, "mine")));
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Internal);
    let panicked = catch_unwind(AssertUnwindSafe(|| lock.scope::<(), Error, _>(|_| panic!("in the work"))));
    assert!(panicked.is_err());
    lock.acquire().unwrap().release().unwrap();
}

/// A program that ends after this has left nothing behind: whoever looks next finds it free.
#[test]
fn work_that_fails_leaves_nothing_behind() {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let script = Script::new();
    let store = Scripted::new(Memory::new(), script.clone());
    let locks = blocking::Client::of(runtime.block_on(async { Client::new(store) })).unwrap();
    // A release that nobody waits for is still on its way by then.
    script.always(Verb::Release, Fault::Slow(Duration::from_millis(200)));
    let mine = || Error::new(ErrorKind::Internal, leasehold::Operation::Check, "mine");
    let is_held = |name| locks.inspect(name).unwrap().is_some_and(|state| !state.holders.is_empty());
    let failed = locks.lock("a").scope(|_| Err::<(), _>(mine()));
    assert!(!is_held("a"), "{failed:?}");
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Internal);
    let failed = locks.election("e").lead("here", |_| Err::<(), _>(mine()));
    assert!(!is_held("e"), "{failed:?}");
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Internal);
}

#[test]
fn work_whose_lock_was_lost_on_the_way_has_failed() {
    let locks = memory();
    let done = locks.lock("a").ttl("300ms").scope(|held| {
        assert_eq!(locks.break_hold("a", held.id(), "test")?, BreakOutcome::Broken);
        held.lost();
        Ok::<_, Error>(())
    });
    assert_eq!(done.unwrap_err().kind(), ErrorKind::Lost);
}

#[test]
fn guards_are_dropped_anywhere() {
    let locks = memory();
    let lock = locks.lock("a").wait(LONG);
    let guard = lock.acquire().unwrap();
    thread::spawn(move || drop(guard)).join().unwrap();
    let guard = lock.acquire().unwrap();
    Builder::new_current_thread().build().unwrap().block_on(async move { drop(guard) });
    let guard = lock.acquire().unwrap();
    Builder::new_multi_thread().worker_threads(1).build().unwrap().block_on(async move { drop(guard) });
    lock.acquire().unwrap().release().unwrap();
}

#[test]
fn it_works_on_the_thread_of_a_runtime_and_is_never_out_of_turns() {
    let work = async {
        let locks = memory();
        // A task is made to give way after some 128 steps; this takes more in one.
        for _ in 0..300 {
            locks.lock("a").wait(LONG).acquire().unwrap().release().unwrap();
            assert!(locks.latch("open").wait_for(LONG).unwrap());
        }
        locks.idle();
    };
    let current = Builder::new_current_thread().build().unwrap();
    current.block_on(async { current.spawn(work).await.unwrap() });
}

#[test]
fn the_other_tasks_of_a_worker_go_on_while_one_is_blocked() {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let held = runtime.block_on(async {
        let client = leasehold::connect("memory:").await.unwrap();
        let guard = client.lock("a").acquire().await.unwrap();
        let locks = blocking::Client::of(client).unwrap();
        let (blocks, blocked) = tokio::sync::oneshot::channel();
        let waits = runtime.spawn(async move {
            blocks.send(()).unwrap();
            // On the one worker there is.
            locks.lock("a").wait(LONG).acquire().map(|guard| guard.fence())
        });
        let releases = runtime.spawn(async move {
            blocked.await.unwrap();
            guard.release().await.unwrap();
        });
        releases.await.unwrap();
        waits.await.unwrap()
    });
    assert_eq!(held.unwrap(), 2);
}

#[test]
fn a_client_that_would_wait_for_its_own_thread_is_refused() {
    let current = Builder::new_current_thread().build().unwrap();
    let client = current.block_on(leasehold::connect("memory:")).unwrap();
    assert_eq!(blocking::Client::of(client).unwrap_err().kind(), ErrorKind::WouldDeadlock);
}

#[test]
fn one_client_serves_synchronous_and_asynchronous_code() {
    let locks = memory();
    let guard = locks.lock("a").acquire().unwrap();
    let client = locks.asynchronous().clone();
    let (asked, asks) = mpsc::channel();
    let waits = thread::spawn(move || {
        let current = Builder::new_current_thread().enable_time().build().unwrap();
        current.block_on(async {
            asked.send(client.lock("a").try_acquire().await.unwrap().is_none()).unwrap();
            client.lock("a").wait(LONG).acquire().await.unwrap().fence()
        })
    });
    assert!(asks.recv().unwrap());
    guard.release().unwrap();
    assert_eq!(waits.join().unwrap(), 2);
}
