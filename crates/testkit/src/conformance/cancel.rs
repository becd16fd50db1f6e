//! Dropping any future at any point is safe: nothing of it is left behind.
//!
//! Each case drops a future after no poll, after one, and so on until it completes: polled as an executor polls and
//! polled between any two steps of anybody else; on a store that answers at once and on one that takes its time, so that
//! requests are under way when their caller goes; without contention, with a holder that stays, and with one that leaves
//! meanwhile.

use std::{fmt::Debug, time::Duration};

use leasehold_core::{Client, ErrorKind, Lock, Owner, Result};
use tokio::task::yield_now;

use super::{
    Fixture,
    probe::{Polls, cut_after, in_vain, is_free, settled, state, take, waiters},
};
use crate::scripted::{Fault, Script, Verb};

/// So many polls of an eager future are enough: in paused time a future that is polled all the time never sees its limit
/// come, because time passes only when everybody waits.
pub(super) const ENOUGH: usize = 300;

/// How the store of a case answers, and how its futures are polled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    pub(super) polls: Polls,
    answers: Fault,
}

/// Every manner, the simplest first.
pub(super) const MANNERS: [Manner; 4] = [
    Manner { polls: Polls::Woken, answers: Fault::Ok },
    Manner { polls: Polls::Eager, answers: Fault::Ok },
    Manner { polls: Polls::Woken, answers: Fault::Slow(Duration::from_millis(2)) },
    Manner { polls: Polls::Eager, answers: Fault::Slow(Duration::from_millis(2)) },
];

impl Manner {
    pub(super) fn play(self, script: &Script) {
        for verb in [Verb::Attempt, Verb::Release, Verb::Recount, Verb::Renew, Verb::Latch] {
            script.always(verb, self.answers);
        }
    }

    /// Drops what `begin` begins after every number of polls; `look` looks for what was left behind, each time.
    async fn sweep<T>(self, begin: impl AsyncFn() -> T, look: impl AsyncFn(usize, Option<T>)) {
        let mut count = 0;
        loop {
            let ended = cut_after(count, self.polls, begin()).await;
            let is_done = ended.is_some();
            look(count, ended).await;
            if is_done || (self.polls == Polls::Eager && count > ENOUGH) {
                return;
            }
            count += 1 + count / 16;
        }
    }
}

/// Somebody else who stands in the way, and what is asked for beside it.
struct Contest {
    client: Client,
    script: Script,
    other: Client,
    names: Vec<String>,
    /// What the other holds while it stands in the way.
    obstacle: Lock,
}

impl Contest {
    async fn new(fixture: &Fixture, obstacle: impl Fn(&Client, &str) -> Lock) -> Self {
        let script = Script::new();
        let (client, other) = (fixture.scripted(&script).await, fixture.client().await);
        let names = ["a", "b", "c"].map(|what| fixture.name(what)).to_vec();
        let obstacle = obstacle(&other, &names[1]);
        Self { client, script, other, names, obstacle }
    }

    /// Asks and drops in every manner. `ask` must give up by itself while the obstacle stays.
    async fn run<G: Debug>(&self, ask: impl AsyncFn(&Self) -> Result<Option<G>>) {
        for manner in MANNERS {
            manner.play(&self.script);
            self.uncontended(manner, &ask).await;
            self.with_a_holder_that_stays(manner, &ask).await;
            self.with_a_holder_that_leaves(manner, &ask).await;
        }
    }

    async fn uncontended<G: Debug>(&self, manner: Manner, ask: &impl AsyncFn(&Self) -> Result<Option<G>>) {
        let look = async |_, asked: Option<Result<Option<G>>>| {
            assert!(answered(asked).is_none_or(|answer| answer.is_some()), "nobody else is there");
            self.nothing_is_left().await;
        };
        manner.sweep(async || ask(self).await, look).await;
    }

    async fn with_a_holder_that_stays<G: Debug>(
        &self,
        manner: Manner,
        ask: &impl AsyncFn(&Self) -> Result<Option<G>>,
    ) {
        let holder = take(&self.obstacle).await;
        let look = async |count, asked: Option<Result<Option<G>>>| {
            assert!(answered(asked).is_none_or(|answer| answer.is_none()), "somebody else has it");
            self.client.idle().await;
            let stats = self.client.stats();
            assert_eq!((stats.held, stats.waiting, stats.tidying), (0, 0, 0), "after {count} polls");
            let found = state(&self.other, &self.names[1]).await;
            assert!(found.waiters.is_empty(), "left in line after {count} polls: {:?}", found.waiters);
        };
        manner.sweep(async || ask(self).await, look).await;
        holder.release().await.unwrap();
        self.nothing_is_left().await;
    }

    async fn with_a_holder_that_leaves<G: Debug>(
        &self,
        manner: Manner,
        ask: &impl AsyncFn(&Self) -> Result<Option<G>>,
    ) {
        let mut count = 0;
        loop {
            let holder = take(&self.obstacle).await;
            let leaves = async {
                for _ in 0..count % 11 {
                    yield_now().await;
                }
                holder.release().await.unwrap();
            };
            let (asked, ()) = tokio::join!(cut_after(count, manner.polls, ask(self)), leaves);
            let is_done = asked.is_some();
            drop(asked);
            self.nothing_is_left().await;
            if is_done || (manner.polls == Polls::Eager && count > ENOUGH) {
                return;
            }
            count += 1 + count / 16;
        }
    }

    async fn nothing_is_left(&self) {
        for name in &self.names {
            settled(&self.client, name).await;
        }
    }
}

/// What was answered, if anything was: a store that is slower than the limit is told as that, and nothing is held.
fn answered<T: Debug>(asked: Option<Result<T>>) -> Option<T> {
    match asked? {
        Err(error) if error.kind() == ErrorKind::Unavailable => None,
        answer => Some(answer.unwrap()),
    }
}

/// A lock, asked for with a limit.
async fn asked(lock: Lock) -> Result<Option<leasehold_core::Guard>> {
    lock.wait("25ms").try_acquire().await
}

/// Acquiring a lock.
pub(super) async fn acquiring_a_lock(fixture: Fixture) {
    let contest = Contest::new(&fixture, Client::lock).await;
    contest.run(async |contest| asked(contest.client.lock(&contest.names[1])).await).await;
}

/// Acquiring a lock in the fair line.
pub(super) async fn acquiring_in_line(fixture: Fixture) {
    let contest = Contest::new(&fixture, |client, name| client.lock(name).fair()).await;
    contest.run(async |contest| asked(contest.client.lock(&contest.names[1]).fair()).await).await;
}

/// Acquiring a lock to read, which is written.
pub(super) async fn acquiring_to_read(fixture: Fixture) {
    let contest = Contest::new(&fixture, |client, name| client.rwlock(name).write()).await;
    contest.run(async |contest| asked(contest.client.rwlock(&contest.names[1]).read()).await).await;
}

/// Acquiring a lock to write, which is read.
pub(super) async fn acquiring_to_write(fixture: Fixture) {
    let contest = Contest::new(&fixture, |client, name| client.rwlock(name).read()).await;
    contest.run(async |contest| asked(contest.client.rwlock(&contest.names[1]).write()).await).await;
}

/// Acquiring permits.
pub(super) async fn acquiring_permits(fixture: Fixture) {
    let contest = Contest::new(&fixture, |client, name| client.semaphore(name, 3).permits(2)).await;
    contest.run(async |contest| asked(contest.client.semaphore(&contest.names[1], 3).permits(2)).await).await;
}

/// Acquiring on behalf of an owner.
pub(super) async fn acquiring_for_an_owner(fixture: Fixture) {
    let (contest, me) = (Contest::new(&fixture, Client::lock).await, Owner::new());
    contest.run(async |contest| asked(contest.client.lock(&contest.names[1]).owner(&me)).await).await;
}

/// Acquiring several locks at once, of which the middle one is held.
pub(super) async fn acquiring_a_set(fixture: Fixture) {
    let contest = Contest::new(&fixture, Client::lock).await;
    contest
        .run(async |contest| {
            let set = contest.names.iter().fold(contest.client.set(), |set, name| set.lock(name));
            set.wait("25ms").try_acquire().await
        })
        .await;
}

/// Trying without waiting.
pub(super) async fn trying(fixture: Fixture) {
    let contest = Contest::new(&fixture, Client::lock).await;
    contest.run(async |contest| contest.client.lock(&contest.names[1]).try_acquire().await).await;
}

/// Acquiring a ticket: without it in hand nothing stays behind.
pub(super) async fn acquiring_a_ticket(fixture: Fixture) {
    let contest = Contest::new(&fixture, Client::lock).await;
    let asked = contest.client.lock(&contest.names[1]).wait("25ms");
    for manner in MANNERS {
        manner.play(&contest.script);
        let look = async |_, ticket: Option<Result<_>>| {
            if let Some(ticket) = answered(ticket) {
                contest.client.release_ticket(&ticket).await.unwrap();
            }
            contest.nothing_is_left().await;
        };
        manner.sweep(async || asked.ticket().await, look).await;
        let ask = async |_: &Contest| match asked.ticket().await {
            Err(error) if error.busy().is_some() => Ok(None),
            answer => answer.map(Some),
        };
        contest.with_a_holder_that_stays(manner, &ask).await;
    }
}

/// Acquiring a lock as one of a cohort.
pub(super) async fn acquiring_in_a_cohort(fixture: Fixture) {
    let contest = Contest::new(&fixture, |client, name| client.lock(name).cohort(3)).await;
    contest.run(async |contest| asked(contest.client.lock(&contest.names[1]).cohort(3)).await).await;
}

/// Waiting for a latch.
pub(super) async fn waiting_for_a_latch(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("latch"));
    client.latch(&name).arm(1).await.unwrap();
    for manner in MANNERS {
        manner.play(&script);
        let look = async |count, waited: Option<Result<bool>>| {
            assert!(waited.transpose().unwrap().is_none_or(|opened| !opened), "it is still armed");
            client.idle().await;
            assert_eq!(waiters(&client, &name).await, 0, "after {count} polls");
            assert_eq!(client.stats().waiting, 0, "after {count} polls");
        };
        manner.sweep(async || client.latch(&name).wait_for("25ms").await, look).await;
    }
    script.heal();
    client.latch(&name).count_down().await.unwrap();
    settled(&client, &name).await;
}

/// A release goes on when its future is dropped.
pub(super) async fn releasing(fixture: Fixture) {
    let script = Script::new();
    let (client, other, name) =
        (fixture.scripted(&script).await, fixture.client().await, fixture.name("release"));
    for manner in MANNERS {
        manner.play(&script);
        let mut count = 0;
        loop {
            let guard = take(&client.lock(&name)).await;
            let released = cut_after(count, manner.polls, guard.release()).await;
            settled(&client, &name).await;
            assert!(is_free(&other.lock(&name)).await);
            if let Some(released) = released {
                released.unwrap();
                break;
            }
            if manner.polls == Polls::Eager && count > ENOUGH {
                break;
            }
            count += 1 + count / 16;
        }
    }
}

/// A guard whose extension was dropped on the way is as good as before.
pub(super) async fn extending(fixture: Fixture) {
    let script = Script::new();
    let (client, other, name) =
        (fixture.scripted(&script).await, fixture.client().await, fixture.name("extend"));
    let guard = take(&client.lock(&name)).await;
    for manner in MANNERS {
        manner.play(&script);
        let look = async |_, extended: Option<Result<()>>| {
            extended.transpose().unwrap();
            client.idle().await;
            guard.check().unwrap();
            assert!(!is_free(&other.lock(&name)).await);
        };
        manner.sweep(async || guard.extend("40s").await, look).await;
    }
    script.heal();
    guard.release().await.unwrap();
    settled(&client, &name).await;
}

/// Entering again and dropping on the way leaves the lock as often held as there are guards.
pub(super) async fn entering_again(fixture: Fixture) {
    let script = Script::new();
    let (client, other, name) =
        (fixture.scripted(&script).await, fixture.client().await, fixture.name("reenter"));
    let me = Owner::new();
    let outer = take(&client.lock(&name).owner(&me)).await;
    for manner in MANNERS {
        manner.play(&script);
        let look = async |count, entered: Option<Result<_>>| {
            drop(entered.transpose().unwrap());
            client.idle().await;
            assert_eq!(state(&other, &name).await.holders[0].count, 1, "after {count} polls");
        };
        manner.sweep(async || client.lock(&name).owner(&me).acquire().await, look).await;
    }
    script.heal();
    outer.check().unwrap();
    outer.release().await.unwrap();
    settled(&client, &name).await;
}

/// A scope that is dropped drops its work and releases its lock.
pub(super) async fn working_in_a_scope(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("scope"));
    let report = client.lock(&name);
    let work = async || {
        let worked = report.scope(async |held| {
            yield_now().await;
            held.check()
        });
        worked.await
    };
    for manner in MANNERS {
        manner.play(&script);
        let look = async |_, worked: Option<Result<()>>| {
            worked.transpose().unwrap();
            settled(&client, &name).await;
        };
        manner.sweep(&work, look).await;
    }
}

/// A loop that loses against a time-out again and again leaves nothing in line.
pub(super) async fn losing_a_race_a_hundred_times(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("race"));
    let holder = take(&other.lock(&name)).await;
    for round in 0..100 {
        let lock = client.lock(&name);
        let race = tokio::time::timeout(Duration::from_micros(round * 40), lock.acquire());
        assert!(race.await.is_err(), "somebody else has it");
    }
    client.idle().await;
    assert_eq!(waiters(&other, &name).await, 0);
    assert_eq!(client.stats().waiting, 0);
    let error = in_vain(async |wait| client.lock(&name).wait(wait).acquire().await).await;
    assert!(error.busy().is_some());
    holder.release().await.unwrap();
    settled(&client, &name).await;
}
