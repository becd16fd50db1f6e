//! A client that is shut down gives everything back, tells everybody, and does nothing more.

use std::time::Duration;

use leasehold_core::{ErrorKind, backend::Loss};
use tokio::task::JoinSet;

use super::{
    Fixture,
    probe::{is_free, joined, refusal, take, until_waiting},
};
use crate::scripted::{Fault, Script, Verb};

/// What is held is released, and its holders are told; so is whoever shuts down, and of what was released before, nothing.
pub(super) async fn shutdown_releases_all_and_tells_holders(fixture: Fixture) {
    let (client, other) = (fixture.client().await, fixture.client().await);
    let names: Vec<String> = (0..20).map(|_| fixture.name("held")).collect();
    let mut guards = Vec::new();
    for name in &names {
        guards.push(take(&client.lock(name)).await);
    }
    take(&client.lock(&fixture.name("done"))).await.release().await.unwrap();
    let watch = guards[0].watch();
    let told = client.clone().shutdown("20s").await.unwrap();
    let mut sorted = names.clone();
    sorted.sort();
    assert_eq!(told.interrupted, sorted);
    assert!(told.unreleased.is_empty(), "{:?}", told.unreleased);
    assert_eq!(watch.lost().await, Loss::Shutdown);
    for (guard, name) in guards.into_iter().zip(&names) {
        assert_eq!(guard.lost().await, Loss::Shutdown);
        let next = take(&other.lock(name)).await;
        assert!(next.fence() > guard.fence());
        assert_eq!(refusal(guard.release().await).kind(), ErrorKind::Lost);
        next.check().unwrap();
        assert!(!is_free(&other.lock(name)).await, "an old guard's release touches nobody else's lock");
        next.release().await.unwrap();
    }
    let stats = client.stats();
    assert_eq!((stats.held, stats.waiting, stats.tidying), (0, 0, 0));
}

/// Whoever waits is told, and leaves the line.
pub(super) async fn shutdown_tells_those_who_wait(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("waits"));
    let holder = take(&other.lock(&name)).await;
    let mut waiting = JoinSet::new();
    for _ in 0..3 {
        let lock = client.lock(&name);
        waiting.spawn(async move { refusal(lock.acquire().await).kind() });
    }
    until_waiting(&other, &name, 1).await;
    client.shutdown("20s").await.unwrap();
    assert_eq!(joined(waiting).await, [ErrorKind::Closed; 3]);
    assert_eq!(super::probe::waiters(&other, &name).await, 0);
    holder.release().await.unwrap();
}

/// A closed client refuses everything that would begin something, with the kind `Closed`; closing again is nothing.
pub(super) async fn a_closed_client_refuses_new_requests(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("closed"));
    client.shutdown("20s").await.unwrap();
    let sent = script.requests();
    assert_eq!(refusal(client.lock(&name).acquire().await).kind(), ErrorKind::Closed);
    assert_eq!(refusal(client.lock(&name).try_acquire().await).kind(), ErrorKind::Closed);
    assert_eq!(refusal(client.set().lock(&name).acquire().await).kind(), ErrorKind::Closed);
    assert_eq!(refusal(client.clone().lock(&name).ticket().await).kind(), ErrorKind::Closed);
    assert_eq!(refusal(client.latch(&name).arm(1).await).kind(), ErrorKind::Closed);
    assert_eq!(script.requests(), sent, "what is refused is not sent");
    client.shutdown("20s").await.unwrap();
}

/// Against a store that does not answer a shutdown ends when it must, and says what is left.
pub(super) async fn shutdown_keeps_to_its_time(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("hangs"));
    let guard = take(&client.lock(&name)).await;
    script.always(Verb::Release, Fault::Never).always(Verb::Close, Fault::Never);
    let start = fixture.time().now();
    let error = refusal(client.shutdown("3s").await);
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().ends_with(&format!("not known to be released: {name}")), "{error}");
    assert_eq!(guard.lost().await, Loss::Shutdown);
    let took = start.until(fixture.time().now());
    assert!(took <= Duration::from_secs(4), "{took:?}");
}

/// A shutdown whose future is dropped leaves the client closed, and its locks are released all the same.
pub(super) async fn a_dropped_shutdown_goes_on(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("dropped"));
    let guard = take(&client.lock(&name)).await;
    drop(super::probe::cut_after(1, super::probe::Polls::Woken, client.shutdown("20s")).await);
    assert_eq!(refusal(client.lock(&name).acquire().await).kind(), ErrorKind::Closed);
    assert_eq!(guard.lost().await, Loss::Shutdown);
    other.lock(&name).acquire().await.unwrap().release().await.unwrap();
}
