//! What people can read of a lock beside who has it: where in the code it was asked for, how its last holds went, who broke it.

use std::time::Duration;

use leasehold_core::{Action, AuditEntry, ClaimId, Client, Past, backend::BreakOutcome, backend::Mode};
use tokio::task::JoinSet;

use super::{
    Fixture,
    probe::{eventually, ghost, joined, settled, state, take, until_waiting},
};

/// Long enough to be worth writing down.
const LASTING: Duration = Duration::from_millis(400);

/// Operators see the line of code that holds a lock, and the line that waits for it.
pub(super) async fn the_line_of_code_is_shown(fixture: Fixture) {
    let (holder, waiter, name) = (fixture.client().await, fixture.client().await, fixture.name("line"));
    let held = holder.lock(&name).label("first");
    let waits = waiter.lock(&name).label("second");
    let place = |line| Some(format!("{}:{line}", file!()));
    let (first, second) = (place(line!() - 3), place(line!() - 2));
    let guard = take(&held).await;
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { waits.acquire().await.unwrap() });
    until_waiting(&holder, &name, 1).await;
    // A store that is told of it is told a little later.
    eventually(async || {
        let found = state(&holder, &name).await;
        let told = |site: Option<&leasehold_core::CallSite>| site.map(ToString::to_string);
        let [one, other] = [
            told(found.holders.first().and_then(|one| one.location.as_ref())),
            told(found.waiters.first().and_then(|one| one.location.as_ref())),
        ];
        one == first && other == second
    })
    .await;
    guard.release().await.unwrap();
    joined(waiting).await.pop().unwrap().release().await.unwrap();
    settled(&waiter, &name).await;
}

/// A hold that lasted is in the history of its name: whose, where in its code, what for, how it ended.
pub(super) async fn a_hold_that_lasted_is_in_the_history(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("past"));
    let lock = client.lock(&name).label("nightly");
    let place = format!("{}:{}", file!(), line!() - 1);
    let guard = take(&lock).await;
    let (id, fence) = (guard.id(), guard.fence());
    until_lasting(&client, &name).await;
    guard.release().await.unwrap();
    let past = written(&other, &name, id).await;
    assert_eq!((past.fence, &*past.how, past.label.as_deref()), (fence, "released", Some("nightly")));
    assert_eq!((&*past.who, past.mode), (client.who(), Mode::Exclusive));
    assert_eq!(past.location.map(|site| site.to_string()), Some(place));
    assert!(past.held >= 300, "as long as it lasted: {}", past.held);
}

/// A ticket's hold is in the history, though whoever released it is not who acquired it.
pub(super) async fn a_tickets_hold_is_in_the_history(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("ticket"));
    let ticket = client.lock(&name).label("deploy").ticket().await.unwrap();
    until_lasting(&client, &name).await;
    other.release_ticket(&ticket).await.unwrap();
    let past = written(&client, &name, ticket.id()).await;
    assert_eq!((past.fence, &*past.how, past.label.as_deref()), (ticket.fence(), "released", Some("deploy")));
}

/// A forced release is in the audit, and in the history though its holder is dead: once, with by whom and why.
pub(super) async fn a_break_is_in_the_audit_and_in_the_history(fixture: Fixture) {
    let (operator, name) = (fixture.client().await, fixture.name("audit"));
    let dead = ghost(&fixture, &name, Mode::Exclusive, Duration::from_secs(60)).await;
    assert_eq!(operator.break_hold(&name, dead.id, " it hangs ").await.unwrap(), BreakOutcome::Broken);
    let entry = entry(&operator, dead.id).await.expect("an entry of the break");
    let by = format!("{}@{}", operator.who().user, operator.who().host);
    assert_eq!((entry.action, &*entry.name, entry.unsure), (Action::Break, &*name, false));
    assert_eq!((&*entry.by, &*entry.why), (&*by, "it hangs"));
    let past = operator.history(&name).await.unwrap();
    let [past] = &past[..] else { panic!("one hold, once: {past:?}") };
    assert_eq!((past.id, &*past.how), (dead.id, "broken"));
    assert_eq!((past.by.as_deref(), past.why.as_deref()), (Some(&*by), Some("it hangs")));
}

/// What becomes of a job by an operator is in the audit, when it is over, too.
pub(super) async fn pausing_a_job_is_in_the_audit(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("job"));
    client.job(&name).pause_as("anna", "the disk is full").await.unwrap();
    client.job(&name).resume_as("bob").await.unwrap();
    let mut acts: Vec<_> = entries(&client).await.into_iter().filter(|entry| entry.name == name).collect();
    acts.sort_by_key(|entry| entry.action == Action::Resume);
    let acts: Vec<_> = acts.iter().map(|entry| (entry.action, &*entry.by, &*entry.why)).collect();
    assert_eq!(acts, [(Action::Pause, "anna", "the disk is full"), (Action::Resume, "bob", "")]);
}

async fn until_lasting(client: &Client, name: &str) {
    eventually(async || state(client, name).await.holders.first().is_some_and(|one| one.held_for > LASTING))
        .await;
}

/// The hold, once it is written down.
async fn written(client: &Client, name: &str, id: ClaimId) -> Past {
    let found = async || client.history(name).await.unwrap().into_iter().find(|past| past.id == id);
    eventually(async || found().await.is_some()).await;
    found().await.expect("what is written stays")
}

async fn entry(client: &Client, id: ClaimId) -> Option<AuditEntry> {
    entries(client).await.into_iter().find(|entry| entry.id == Some(id))
}

/// The whole audit: other cases write to it, too.
async fn entries(client: &Client) -> Vec<AuditEntry> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let page = client.audit(cursor.as_deref(), 100).await.unwrap();
        all.extend(page.entries);
        match page.next {
            Some(next) => cursor = Some(next),
            None => return all,
        }
    }
}
