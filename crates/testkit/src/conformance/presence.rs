//! Who holds, who waits, since when: what a busy answer says and what operators see.

use std::time::Duration;

use leasehold_core::{
    Client, Lock,
    backend::{BreakOutcome, Busy, Kind, LockState, Mode},
};
use tokio::task::JoinSet;

use super::{
    Fixture,
    probe::{busy, is_free, joined, settled, state, take, until_waiting},
};
use crate::scripted::Script;

/// A busy answer says who holds the lock, what for, since when and for how long still.
pub(super) async fn a_busy_answer_says_who(fixture: Fixture) {
    let who = Fixture::stranger();
    let holder = fixture.builder(&Script::new()).await.who(who.clone()).build();
    let (client, name) = (fixture.client().await, fixture.name("who"));
    assert_eq!((holder.who(), &*who.program), (&who, "stranger"));
    let guard = take(&holder.lock(&name).ttl("20s").label("nightly")).await;
    let answer = busy(&client.lock(&name)).await;
    let [found] = &answer.holders[..] else { panic!("{answer:?}") };
    assert_eq!(*found.who, who);
    assert_eq!(
        (found.id, found.fence, found.mode, found.count),
        (guard.id(), guard.fence(), Mode::Exclusive, 1)
    );
    assert_eq!(found.label.as_deref(), Some("nightly"));
    assert!(found.remaining <= Duration::from_secs(20) && !found.remaining.is_zero(), "{found:?}");
    let told = answer.to_string();
    for part in ["stranger", &who.pid.to_string(), &who.host, "nightly"] {
        assert!(told.contains(part), "{told:?} does not say {part:?}");
    }
    guard.release().await.unwrap();
    settled(&client, &name).await;
}

/// All readers are named to the writer who waits for them.
pub(super) async fn a_busy_answer_names_all_holders(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("readers"));
    let readers =
        [take(&client.rwlock(&name).read()).await, take(&other.rwlock(&name).read().label("second")).await];
    let answer = busy(&client.rwlock(&name).write()).await;
    let mut named: Vec<_> = answer.holders.iter().map(|holder| (holder.id, holder.mode)).collect();
    let mut wanted: Vec<_> = readers.iter().map(|reader| (reader.id(), Mode::Shared)).collect();
    named.sort_unstable_by_key(|(id, _)| *id);
    wanted.sort_unstable_by_key(|(id, _)| *id);
    assert_eq!(named, wanted);
    for reader in readers {
        reader.release().await.unwrap();
    }
}

/// Operators see holders and those who wait, with who they are and what they want.
pub(super) async fn inspect_shows_holders_and_waiters(fixture: Fixture) {
    let (holder, other, name) = (fixture.client().await, fixture.client().await, fixture.name("inspect"));
    let waiter = fixture.builder(&Script::new()).await.who(Fixture::stranger()).build();
    assert!(other.inspect(&name).await.unwrap().is_none(), "nobody uses it yet");
    let guard = take(&holder.lock(&name).label("first")).await;
    let lock = waiter.lock(&name).label("second");
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { lock.acquire().await.unwrap() });
    until_waiting(&other, &name, 1).await;
    let found = state(&other, &name).await;
    assert_eq!((found.name.as_str(), found.kind, found.fence), (name.as_str(), Kind::Lock, guard.fence()));
    assert_eq!((found.holders[0].id, found.holders[0].label.as_deref()), (guard.id(), Some("first")));
    assert_eq!(found.holders[0].who.client, holder.who().client);
    let standing = &found.waiters[0];
    assert_eq!(
        (standing.mode, standing.fair, standing.label.as_deref()),
        (Mode::Exclusive, false, Some("second"))
    );
    assert_eq!(&*standing.who, waiter.who());
    guard.release().await.unwrap();
    joined(waiting).await.pop().unwrap().release().await.unwrap();
    settled(&waiter, &name).await;
}

/// Where there is a line, a busy answer says our place in it, and how many others wait.
pub(super) async fn a_busy_answer_says_our_place_in_line(fixture: Fixture) {
    let (holder, client, name) = (fixture.client().await, fixture.client().await, fixture.name("place"));
    let guard = take(&holder.lock(&name).fair()).await;
    let mut waiting = JoinSet::new();
    for number in 1..=2 {
        let lock = client.lock(&name).fair();
        waiting.spawn(async move { lock.acquire().await.unwrap().release().await.unwrap() });
        until_waiting(&holder, &name, number).await;
    }
    let answer = placed(&holder.lock(&name).fair()).await;
    assert_eq!((answer.place, answer.waiters), (Some(3), 2), "{answer}");
    let answer = busy(&holder.lock(&name)).await;
    assert_eq!((answer.place, answer.waiters), (None, 2), "one who only tries has no place: {answer}");
    let found = state(&holder, &name).await;
    assert!(found.waiters.iter().all(|waiter| waiter.fair));
    guard.release().await.unwrap();
    joined(waiting).await;
    settled(&client, &name).await;
}

/// The busy answer of one who stood in line: a wait may be over before its place is taken, so it is made longer.
async fn placed(lock: &Lock) -> Busy {
    let mut wait = Duration::from_millis(30);
    loop {
        let answer = busy(&lock.clone().wait(wait)).await;
        if answer.place.is_some() {
            return answer;
        }
        wait *= 2;
    }
}

/// Names in use are listed, a page at a time, by prefix; those no longer in use are not.
pub(super) async fn list_shows_the_names_in_use(fixture: Fixture) {
    let client = fixture.client().await;
    let mark = fixture.name("list");
    let names: Vec<String> = (0..7).map(|number| format!("{mark}/{number}")).collect();
    let mut guards = Vec::new();
    for name in &names {
        guards.push(take(&client.lock(name)).await);
    }
    assert!(is_free(&client.lock(&format!("{mark}/free"))).await);
    for limit in [1, 3, 7, 100] {
        assert_eq!(listed(&client, &format!("{mark}/"), limit).await, names, "{limit} at a time");
    }
    assert_eq!(listed(&client, &format!("{mark}/3"), 2).await, [names[3].clone()]);
    guards.remove(2).release().await.unwrap();
    // A release is answered by most of several servers; what the others still have is on its way.
    client.idle().await;
    assert_eq!(listed(&client, &format!("{mark}/"), 2).await.len(), 6);
    drop(guards);
    client.idle().await;
    assert!(listed(&client, &mark, 2).await.is_empty());
}

/// All names of a prefix, page by page, sorted. A store may show a name twice.
async fn listed(client: &Client, prefix: &str, limit: usize) -> Vec<String> {
    let mut names: Vec<String> =
        pages(client, prefix, limit).await.into_iter().map(|state| state.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

async fn pages(client: &Client, prefix: &str, limit: usize) -> Vec<LockState> {
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = client.list(prefix, cursor.as_deref(), limit).await.unwrap();
        found.extend(page.locks);
        match page.next {
            Some(next) => cursor = Some(next),
            None => return found,
        }
    }
}

/// A client sees its own names, without its prefix.
pub(super) async fn list_is_of_the_clients_own_names(fixture: Fixture) {
    let mark = fixture.name("own");
    let shop = fixture.builder(&Script::new()).await.prefix(&format!("{mark}-shop:")).build();
    let bank = fixture.builder(&Script::new()).await.prefix(&format!("{mark}-bank:")).build();
    let guards = [take(&shop.lock("a")).await, take(&shop.lock("b")).await, take(&bank.lock("a")).await];
    assert_eq!(listed(&shop, "", 1).await, ["a", "b"]);
    assert_eq!(listed(&shop, "b", 10).await, ["b"]);
    assert_eq!(listed(&bank, "", 10).await, ["a"]);
    assert_eq!(state(&bank, "a").await.name, "a");
    let found = pages(&fixture.client().await, &mark, 10).await;
    assert_eq!(found.len(), 3, "a client without a prefix sees them all");
    drop(guards);
    shop.idle().await;
    bank.idle().await;
}

/// Whatever a client calls a name, it looks at, lists and breaks nothing of another prefix.
pub(super) async fn no_name_reaches_into_another_prefix(fixture: Fixture) {
    let mark = fixture.name("reach");
    // What a store reads as a pattern or a path must not be one here.
    let (wild, near) = (format!("{mark}*:"), format!("{mark}-b:"));
    let shop = fixture.builder(&Script::new()).await.prefix(&near).build();
    let bank = fixture.builder(&Script::new()).await.prefix(&wild).build();
    let held = take(&shop.lock("a")).await;
    assert!(listed(&bank, "", 10).await.is_empty());
    let up = format!("../{near}a");
    let full = format!("{near}a");
    for name in ["a", "*", "?", "[a]", "%", "_", "..", "../a", "{a}", &up, &full] {
        assert!(bank.inspect(name).await.unwrap().is_none(), "{name}");
        let outcome = bank.break_hold(name, held.id(), "test").await.unwrap();
        assert_ne!(outcome, BreakOutcome::Broken, "{name}");
    }
    // What took nothing is not written down as if it had.
    assert_eq!(bank.audit(None, 100).await.map_or(0, |page| page.entries.len()), 0);
    let theirs = take(&bank.lock(&full)).await;
    assert_eq!(listed(&shop, "", 10).await, ["a"]);
    assert_eq!(listed(&bank, "", 10).await, [full.as_str()]);
    theirs.release().await.unwrap();
    held.release().await.unwrap();
}

/// The dead are not shown once their lease is over.
pub(super) async fn the_dead_are_not_shown(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("dead"));
    let _dead = super::probe::ghost(&fixture, &name, Mode::Exclusive, fixture.brief().await).await;
    assert_eq!(state(&client, &name).await.holders.len(), 1);
    super::probe::eventually(async || client.inspect(&name).await.unwrap().is_none()).await;
    assert!(listed(&client, &name, 10).await.is_empty());
}
