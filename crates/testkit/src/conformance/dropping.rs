//! Dropping a guard gives the lock back, wherever it is dropped.

use std::panic::{AssertUnwindSafe, catch_unwind};

use leasehold_core::{Client, Guard};
use tokio::task::JoinSet;

use super::{
    Fixture,
    probe::{eventually, is_free, joined, settled, state, take, until_waiting},
    stage::Stage,
};

/// Dropped in a task.
pub(super) async fn a_dropped_guard_is_released(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("drop"));
    drop(take(&client.lock(&name)).await);
    // Whoever waits is woken by it, with nobody calling idle().
    other.lock(&name).acquire().await.unwrap().release().await.unwrap();
    settled(&client, &name).await;
}

/// Dropped on a thread that knows no runtime.
pub(super) async fn a_guard_dropped_on_a_plain_thread_is_released(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("thread"));
    let guard = take(&client.lock(&name)).await;
    let dropped = std::thread::spawn(move || {
        assert!(tokio::runtime::Handle::try_current().is_err());
        drop(guard);
    });
    dropped.join().unwrap();
    settled(&client, &name).await;
}

/// Dropped while a panic unwinds.
pub(super) async fn a_guard_dropped_by_a_panic_is_released(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("panic"));
    let guard = take(&client.lock(&name)).await;
    let unwound = catch_unwind(AssertUnwindSafe(move || {
        let _guard: Guard = guard;
        std::panic::resume_unwind(Box::new("planted"));
    }));
    assert!(unwound.is_err());
    settled(&client, &name).await;
}

/// A guard keeps its lock though every other part of its client was dropped.
pub(super) async fn a_guard_keeps_its_client_alive(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("alive"));
    let guard = take(&client.lock(&name).ttl(fixture.brief().await)).await;
    drop(client);
    for _ in 0..4 {
        guard.renewed(guard.deadline()).await;
    }
    guard.check().unwrap();
    assert!(!is_free(&other.lock(&name)).await);
    drop(guard);
    other.lock(&name).acquire().await.unwrap().release().await.unwrap();
    eventually(async || other.inspect(&name).await.unwrap().is_none()).await;
}

/// Many guards dropped at once are all released.
pub(super) async fn many_guards_dropped_at_once_are_released(fixture: Fixture) {
    let client = fixture.client().await;
    let names: Vec<String> = (0..100).map(|_| fixture.name("many")).collect();
    let mut guards = Vec::new();
    for name in &names {
        guards.push(take(&client.lock(name)).await);
    }
    assert_eq!(client.stats().held, 100);
    drop(guards);
    for name in &names {
        settled(&client, name).await;
    }
}

/// A guard, a client, a wait and a lock dropped after their runtime do not panic, and neither does asking a guard.
pub(super) fn what_outlives_its_runtime_does_not_panic(stage: &Stage<'_>) {
    let runtime = stage.runtime();
    let (client, guards, waiting) = runtime.block_on(async {
        let fixture = stage.fixture().await;
        let (client, name) = (fixture.client().await, fixture.name("outlives"));
        let guard = take(&client.lock(&name)).await;
        let lost = take(&client.lock(&fixture.name("other"))).await;
        let lock = client.lock(&name);
        let mut waiting = JoinSet::new();
        waiting.spawn(async move { lock.acquire().await.map(drop) });
        until_waiting(&client, &name, 1).await;
        (client, (guard, lost), waiting)
    });
    drop(runtime);
    let (guard, other) = guards;
    assert!(guard.fence() > 0 && guard.id() != other.id());
    // Nothing renews it any more, and it does not pretend otherwise; until its deadline it is held all the same.
    drop((guard.state(), guard.check(), guard.remaining()));
    drop(guard);
    let lock = client.lock("after");
    drop(waiting);
    std::thread::spawn(move || drop(other)).join().unwrap();
    drop((lock, client));
}

/// A runtime that ends with locks held, awaited and being released ends.
pub(super) fn a_runtime_ends_with_everything_under_way(stage: &Stage<'_>) {
    for polls in 0..12 {
        let runtime = stage.runtime();
        runtime.block_on(async {
            let fixture = stage.fixture().await;
            let (client, name) = (fixture.client().await, fixture.name("ends"));
            let mut tasks = JoinSet::new();
            for _ in 0..5 {
                let lock = client.lock(&name);
                tasks.spawn(async move {
                    loop {
                        lock.acquire().await?.release().await?;
                        tokio::task::yield_now().await;
                    }
                    #[expect(unreachable_code, reason = "says what the loop fails with")]
                    Ok::<(), leasehold_core::Error>(())
                });
            }
            for _ in 0..polls {
                tokio::task::yield_now().await;
            }
            tasks.detach_all();
        });
        drop(runtime);
    }
}

/// A client that is dropped while it waits withdraws; a lock it holds in a task goes with the task.
pub(super) async fn an_aborted_task_gives_back_what_it_held(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("abort"));
    let mut tasks = JoinSet::new();
    tasks.spawn(hold_for_ever(client.clone(), name.clone()));
    eventually(async || other.inspect(&name).await.unwrap().is_some()).await;
    assert_eq!(state(&other, &name).await.holders.len(), 1);
    tasks.abort_all();
    assert!(tasks.join_next().await.unwrap().unwrap_err().is_cancelled());
    drop(joined(tasks).await);
    settled(&client, &name).await;
}

async fn hold_for_ever(client: Client, name: String) {
    let _guard = take(&client.lock(&name)).await;
    std::future::pending::<()>().await;
}
