//! Locks that outlive the process that made them.

use leasehold_core::{ErrorKind, Ticket, backend::BreakOutcome};

use super::{
    Fixture,
    probe::{in_vain, is_free, refusal, settled, state, take},
};
use crate::scripted::Script;

/// A ticket is a line of text by which another client renews and releases the lock.
pub(super) async fn a_ticket_passes_from_client_to_client(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("ticket 锁"));
    let ticket = client.lock(&name).ttl("30s").label("deploy").ticket().await.unwrap();
    assert_eq!(ticket.name(), name);
    client.shutdown("20s").await.unwrap();
    let found = state(&other, &name).await;
    assert_eq!((found.holders[0].id, found.holders[0].fence), (ticket.id(), ticket.fence()));
    assert_eq!(found.holders[0].label.as_deref(), Some("deploy"));
    let text = ticket.to_string();
    assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
    let ticket: Ticket = text.parse().unwrap();
    let granted = other.renew_ticket(&ticket, "60s").await.unwrap();
    assert!(granted.as_secs() > 30);
    assert!(!is_free(&other.lock(&name)).await);
    other.release_ticket(&ticket).await.unwrap();
    settled(&other, &name).await;
}

/// A ticket that was released, ran out or was broken is lost, and touches nobody else's lock.
pub(super) async fn a_ticket_that_is_over_is_lost(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("over"));
    let released = client.lock(&name).ticket().await.unwrap();
    client.release_ticket(&released).await.unwrap();
    let expired = client.lock(&name).ttl(fixture.brief().await).ticket().await.unwrap();
    let broken = client.lock(&name).ticket().await.unwrap();
    assert!(released.fence() < expired.fence() && expired.fence() < broken.fence());
    assert_eq!(client.break_hold(&name, broken.id(), "x").await.unwrap(), BreakOutcome::Broken);
    let guard = take(&client.lock(&name)).await;
    for ticket in [released, expired, broken] {
        assert_eq!(refusal(client.renew_ticket(&ticket, "30s").await).kind(), ErrorKind::Lost);
        assert_eq!(refusal(client.release_ticket(&ticket).await).kind(), ErrorKind::Lost);
    }
    guard.extend("30s").await.unwrap();
    guard.release().await.unwrap();
    settled(&client, &name).await;
}

/// A ticket is not given for a lock that somebody else has, and its lock keeps others out.
pub(super) async fn tickets_and_guards_exclude_each_other(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("exclude"));
    let guard = take(&client.lock(&name)).await;
    let error = in_vain(async |wait| other.lock(&name).wait(wait).ticket().await).await;
    assert_eq!(error.busy().unwrap().holders[0].id, guard.id());
    guard.release().await.unwrap();
    let ticket = other.lock(&name).wait("50s").ticket().await.unwrap();
    assert!(!is_free(&client.lock(&name)).await);
    assert_eq!(client.stats().held, 0);
    other.release_ticket(&ticket).await.unwrap();
    settled(&client, &name).await;
}

/// What is no ticket, and leases no ticket can have, are refused before anything is sent.
pub(super) async fn what_is_no_ticket_is_refused(fixture: Fixture) {
    for text in ["", "ticket", "lh1/a/b/c/d/e", "\0", &"x".repeat(1 << 20)] {
        assert_eq!(text.parse::<Ticket>().unwrap_err().kind(), ErrorKind::Config);
    }
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("refused"));
    let ticket = client.lock(&name).ticket().await.unwrap();
    let sent = script.requests();
    for ttl in ["0s", "soon", "10000 years"] {
        assert_eq!(refusal(client.renew_ticket(&ticket, ttl).await).kind(), ErrorKind::Config);
    }
    assert_eq!(script.requests(), sent);
    client.release_ticket(&ticket).await.unwrap();
    settled(&client, &name).await;
}
