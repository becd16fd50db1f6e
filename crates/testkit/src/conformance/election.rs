//! One leader at a time, and what it says of itself.

use std::time::Duration;

use leasehold_core::{ErrorKind, Leader, Leaders, backend::BreakOutcome};
use tokio::task::JoinSet;

use super::{
    Fixture,
    probe::{eventually, joined, refusal, settled, take, until_waiting},
};
use crate::scripted::{Fault, Script, Verb};

/// The next that is told, as text; nothing for nobody.
async fn told(leaders: &mut Leaders) -> Option<String> {
    leaders.next().await.unwrap().map(|leader: Leader| leader.text().into_owned())
}

/// One leads, the others wait; what it proclaims is seen by all, and after it resigns the next one leads, with a greater
/// fence.
pub(super) async fn one_leads_until_it_resigns(fixture: Fixture) {
    let (one, other, name) = (fixture.client().await, fixture.client().await, fixture.name("resigns"));
    let election = one.election(&name);
    assert!(election.leader().await.unwrap().is_none());
    let first = election.campaign("first").await.unwrap();
    assert!(first.healthy());
    assert!(other.election(&name).try_campaign("second").await.unwrap().is_none());
    let seen = other.election(&name).leader().await.unwrap().unwrap();
    assert_eq!((&*seen.text(), seen.fence, seen.id), ("first", first.fence(), first.guard().id()));
    assert_eq!(seen.who.client, one.who().client);
    first.proclaim("moved").await.unwrap();
    assert_eq!(other.election(&name).leader().await.unwrap().unwrap().text(), "moved");
    let (campaign, mut waiting) = (other.election(&name), JoinSet::new());
    waiting.spawn(async move { campaign.campaign("second").await.unwrap() });
    until_waiting(&other, &name, 1).await;
    let before = first.fence();
    first.resign().await.unwrap();
    let second = joined(waiting).await.pop().unwrap();
    assert!(second.fence() > before);
    assert_eq!(election.leader().await.unwrap().unwrap().text(), "second");
    second.resign().await.unwrap();
    assert!(election.leader().await.unwrap().is_none());
    settled(&one, &name).await;
    settled(&other, &name).await;
}

/// Observers are told of every leader and every value they can see, and of the time in between.
pub(super) async fn observers_are_told(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("observed"));
    let election = client.election(&name).every("5ms");
    let mut leaders = election.observe();
    assert_eq!(told(&mut leaders).await, None);
    let first = election.campaign("a").await.unwrap();
    let mut seen = told(&mut leaders).await;
    if seen.as_deref() == Some("") {
        // It led already, and had not yet come to say anything.
        seen = told(&mut leaders).await;
    }
    assert_eq!(seen.as_deref(), Some("a"));
    first.proclaim("b").await.unwrap();
    assert_eq!(told(&mut leaders).await.as_deref(), Some("b"));
    first.resign().await.unwrap();
    while let Some(left) = told(&mut leaders).await {
        assert_eq!(left, "", "what it proclaimed was taken back before it stopped leading");
    }
    settled(&client, &name).await;
}

/// One whose lead was broken is told, proclaims nothing any more, and leaves what the next one proclaimed alone.
pub(super) async fn a_deposed_leader_proclaims_nothing(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("deposed"));
    let old = client.election(&name).campaign("old").await.unwrap();
    assert_eq!(other.break_hold(&name, old.guard().id(), "deposed").await.unwrap(), BreakOutcome::Broken);
    let new = other.election(&name).campaign("new").await.unwrap();
    assert!(new.fence() > old.fence());
    // Whether it has heard of it by now or not, the store lets it write nothing over its successor.
    assert_eq!(refusal(old.proclaim("still me").await).kind(), ErrorKind::Lost);
    assert_eq!(refusal(old.resign().await).kind(), ErrorKind::Lost);
    assert_eq!(client.election(&name).leader().await.unwrap().unwrap().text(), "new");
    new.resign().await.unwrap();
    settled(&other, &name).await;
}

/// The work of a leader that can no longer renew is dropped, and is over before its lease is.
pub(super) async fn work_ends_with_the_lead(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("work"));
    let election = client.election(&name).ttl(fixture.brief().await);
    let health = election.health();
    assert!(health.is_healthy() && health.state().is_none(), "one that does not lead is healthy");
    let led = election
        .lead("me", async |leadership| {
            assert!(health.is_healthy() && health.state().is_some());
            script.always(Verb::Renew, Fault::Err(ErrorKind::Unavailable));
            eventually(async || !leadership.healthy()).await;
            assert!(!health.is_healthy(), "one that leads and cannot renew is not");
            std::future::pending::<leasehold_core::Result<()>>().await
        })
        .await;
    assert_eq!(refusal(led).kind(), ErrorKind::Lost);
    assert!(health.is_healthy(), "its work is over, so it is a candidate like any other");
    script.heal();
    let again = election.lead("again", async |leadership| leadership.check()).await;
    again.unwrap();
    settled(&client, &name).await;
}

/// What a leader leaves behind is nobody's, and what one that resigned had proclaimed is gone.
pub(super) async fn values_go_with_their_leader(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("values"));
    let election = client.election(&name);
    drop(election.campaign("dead").await.unwrap());
    let guard = take(&client.lock(&name).wait("10s")).await;
    let silent = election.leader().await.unwrap().unwrap();
    assert_eq!((silent.value, silent.id), (None, guard.id()));
    guard.release().await.unwrap();
    let backend = fixture.backend(&Script::new()).await;
    let cells = async || backend.list_cells(&format!("election:{name}"), None, 10).await.unwrap().cells.len();
    let last = election.campaign("last").await.unwrap();
    assert_eq!(cells().await, 1);
    last.resign().await.unwrap();
    eventually(async || cells().await == 0).await;
    settled(&client, &name).await;
}

/// Whoever resigns leads until its lock is released; what it has taken back by then is no value, not an empty one.
pub(super) async fn what_is_taken_back_is_not_an_empty_value(fixture: Fixture) {
    let script = Script::new();
    let (client, other, name) =
        (fixture.scripted(&script).await, fixture.client().await, fixture.name("taken-back"));
    let leadership = client.election(&name).campaign("here").await.unwrap();
    script.next(Verb::Release, [Fault::Slow(Duration::from_millis(200))]);
    let looks = async {
        // No more than that: while there is something to do, a clock that is the test's own stands still.
        for _ in 0..50 {
            tokio::task::yield_now().await;
            let said = other.election(&name).leader().await.unwrap().and_then(|leader| leader.value);
            assert!(matches!(said.as_deref(), None | Some(b"here")), "{said:?}");
        }
    };
    let (resigned, ()) = tokio::join!(leadership.resign(), looks);
    resigned.unwrap();
    settled(&client, &name).await;
}
