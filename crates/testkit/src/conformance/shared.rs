//! Many readers, or one writer.

use std::sync::Arc;

use leasehold_core::Guard;
use tokio::{
    sync::Barrier,
    task::{JoinSet, yield_now},
};

use super::{
    Fixture,
    probe::{Stopwatch, is_free, joined, settled, take, until_waiting},
};
use crate::history::{Act, Mode, Recorder, check};

/// Readers hold together; each keeps writers out, and a writer keeps everybody out.
pub(super) async fn readers_share_and_writers_do_not(fixture: Fixture) {
    let (one, other, name) = (fixture.client().await, fixture.client().await, fixture.name("shared"));
    let first = take(&one.rwlock(&name).read()).await;
    let second = take(&other.rwlock(&name).read()).await;
    assert!(!is_free(&one.rwlock(&name).write()).await);
    first.release().await.unwrap();
    assert!(!is_free(&other.rwlock(&name).write()).await, "one reader is left");
    second.release().await.unwrap();
    let writer = take(&one.rwlock(&name).write()).await;
    assert!(!is_free(&other.rwlock(&name).read()).await);
    assert!(!is_free(&other.rwlock(&name).write()).await);
    writer.release().await.unwrap();
    settled(&one, &name).await;
    settled(&other, &name).await;
}

/// A writer that waits gets in when the last of several readers leaves, not before.
pub(super) async fn a_waiting_writer_gets_in_after_the_last_reader(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("last"));
    let mut readers = Vec::new();
    for _ in 0..3 {
        readers.push(take(&client.rwlock(&name).read()).await);
    }
    let writer = other.rwlock(&name).write();
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { writer.acquire().await.unwrap() });
    until_waiting(&client, &name, 1).await;
    let watch = Stopwatch::start(&fixture);
    for reader in readers {
        assert!(waiting.try_join_next().is_none());
        reader.release().await.unwrap();
    }
    joined(waiting).await.pop().unwrap().release().await.unwrap();
    watch.was_prompt();
    settled(&other, &name).await;
}

/// When a writer leaves, all waiting readers get in together.
pub(super) async fn waiting_readers_get_in_together(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("together"));
    let writer = take(&client.rwlock(&name).write()).await;
    let inside = Arc::new(Barrier::new(5));
    let mut readers = JoinSet::new();
    for _ in 0..5 {
        let (lock, inside) = (other.rwlock(&name).read(), inside.clone());
        readers.spawn(async move {
            let guard = lock.acquire().await.unwrap();
            // Nobody passes before all five hold it.
            inside.wait().await;
            guard.release().await.unwrap();
        });
    }
    until_waiting(&client, &name, 5).await;
    let watch = Stopwatch::start(&fixture);
    writer.release().await.unwrap();
    joined(readers).await;
    watch.was_prompt();
    settled(&other, &name).await;
}

/// Readers and writers at random: no writer ever believes to hold it beside anybody.
pub(super) async fn readers_and_writers_keep_a_sound_history(fixture: Fixture) {
    let (clients, name) = ([fixture.client().await, fixture.client().await], fixture.name("mixed"));
    let clock = fixture.time();
    let recorder = Recorder::with_time(move || clock.now().as_nanos());
    let mut tasks = JoinSet::new();
    for task in 0..6 {
        let (rwlock, recorder, name) = (clients[task % 2].rwlock(&name), recorder.clone(), name.clone());
        tasks.spawn(async move {
            for round in 0..15 {
                let owner = (task * 1000 + round) as u64;
                let writes = (task + round) % 3 == 0;
                let (lock, mode) =
                    if writes { (rwlock.write(), Mode::Exclusive) } else { (rwlock.read(), Mode::Shared) };
                let asked = recorder.asked(&name, owner, Act::Acquire { mode });
                let guard = lock.acquire().await.unwrap();
                asked.granted(guard.fence(), guard.deadline().as_nanos());
                yield_now().await;
                let asked = recorder.asked(&name, owner, Act::Release);
                guard.release().await.unwrap();
                asked.done();
            }
        });
    }
    joined(tasks).await;
    let verdict = check(&recorder.history());
    assert!(verdict.is_sound() && verdict.grants == 90, "{verdict}");
    settled(&clients[0], &name).await;
}

/// A writer in the fair line is not overtaken by readers that come after it.
pub(super) async fn readers_do_not_overtake_a_writer_in_line(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("starve"));
    let reader = take(&client.rwlock(&name).read().fair()).await;
    let (writes, reads) = (other.rwlock(&name).write().fair(), other.rwlock(&name).read().fair());
    let mut writing = JoinSet::new();
    writing.spawn(async move { writes.acquire().await.unwrap() });
    until_waiting(&client, &name, 1).await;
    let mut reading = JoinSet::new();
    reading.spawn(async move { reads.acquire().await.unwrap() });
    until_waiting(&client, &name, 2).await;
    assert!(reading.try_join_next().is_none(), "it stands behind the writer");
    reader.release().await.unwrap();
    let second: Guard = joined(writing).await.pop().unwrap();
    assert!(reading.try_join_next().is_none());
    let fence = second.fence();
    second.release().await.unwrap();
    let third = joined(reading).await.pop().unwrap();
    assert!(third.fence() > fence);
    third.release().await.unwrap();
    settled(&other, &name).await;
}
