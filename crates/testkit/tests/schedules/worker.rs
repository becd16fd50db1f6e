//! A worker: asks for locks of every sort, does with them what a user can do, and lets go in every way there is.

use std::{future::Future, time::Duration};

use leasehold_core::{Client, Error, ErrorKind, Guard, Lock, Owner, Result, SetGuard};
use leasehold_testkit::{
    history::{Act, Mode},
    scripted::Dice,
};
use tokio::time::Instant;

use super::{
    ledger::{Entry, Ledger},
    whim::Whim,
    world::{NAMES, World},
};

/// How much longer than it was ready to wait a worker may be kept.
const MARGIN: Duration = Duration::from_millis(510);

pub(crate) struct Worker {
    client: Client,
    index: usize,
    onlooker: Client,
    ledger: Ledger,
    whim: Whim,
    /// Shared with the other workers of this client, as far as they ask with it.
    me: Owner,
    number: u64,
    asked: u64,
}

/// What a worker asks for.
struct Wish {
    name: String,
    /// Nobody else ever asks for it, so nobody else can have it.
    is_alone: bool,
    mode: Mode,
    lock: Lock,
    owner: u64,
    reenters: bool,
}

/// What it got.
enum Held {
    One(Guard),
    Several(SetGuard),
}

impl Held {
    fn guards(&self) -> &[Guard] {
        match self {
            Self::One(guard) => std::slice::from_ref(guard),
            Self::Several(set) => set.guards(),
        }
    }

    async fn release(self) -> Result<()> {
        match self {
            Self::One(guard) => guard.release().await,
            Self::Several(set) => set.release().await,
        }
    }
}

impl Worker {
    pub(crate) fn new(world: &World, ledger: &Ledger, number: u64, dice: Dice) -> Self {
        let index = number as usize % world.clients.len();
        let (client, onlooker) = (world.clients[index].clone(), world.onlooker.clone());
        let (me, whim) = (world.owners[index].clone(), Whim { dice, may_be_mute: world.may_be_mute });
        Self { client, index, onlooker, ledger: ledger.clone(), whim, me, number, asked: 0 }
    }

    pub(crate) async fn run(mut self, rounds: u64) {
        for _ in 0..rounds {
            self.rest(600).await;
            match self.whim.dice.below(100) {
                0..=5 => self.break_somebody().await,
                6..=13 => self.take_several().await,
                _ => {
                    let wish = self.wish();
                    self.take(wish).await;
                }
            }
        }
    }

    /// Draws what to ask for.
    fn wish(&mut self) -> Wish {
        self.asked += 1;
        let own = 1_000 + self.number * 1_000 + self.asked;
        let (client, name) = (&self.client, NAMES[0]);
        let is_alone = self.whim.dice.chance(15);
        let alone = format!("own-{own}");
        let (name, mode, lock) = match self.whim.dice.below(12) {
            _ if is_alone => (&*alone, Mode::Exclusive, client.lock(&alone)),
            0..=1 => (name, Mode::Exclusive, client.lock(name)),
            2 => (name, Mode::Exclusive, client.lock(name).fair()),
            3..=4 => (name, Mode::Exclusive, client.lock(name).cohort(3)),
            5 => (name, Mode::Exclusive, client.lock(name).max_hold("2s")),
            6 => (NAMES[1], Mode::Shared, client.rwlock(NAMES[1]).read()),
            7 => (NAMES[1], Mode::Exclusive, client.rwlock(NAMES[1]).write()),
            8 => (NAMES[1], Mode::Shared, client.rwlock(NAMES[1]).read().fair()),
            9 => (NAMES[2], Mode::Permits { take: 2, of: 3 }, client.semaphore(NAMES[2], 3).permits(2)),
            _ => {
                let lock = client.lock(name).owner(&self.me);
                return Wish {
                    name: name.to_owned(),
                    is_alone,
                    mode: Mode::Exclusive,
                    lock,
                    owner: self.index as u64 + 1,
                    reenters: true,
                };
            }
        };
        let lock = if self.whim.dice.chance(15) { lock.no_renew() } else { lock };
        Wish { name: name.to_owned(), is_alone, mode, lock, owner: own, reenters: false }
    }

    async fn take(&mut self, wish: Wish) {
        let wait = self.whim.dice.chance(75).then(|| Duration::from_millis(self.whim.dice.below(6_000)));
        let lock = wish.lock.clone().ttl(Duration::from_millis(500 + 100 * self.whim.dice.below(30)));
        let lock = match wait {
            Some(wait) => lock.wait(wait),
            None => lock,
        };
        let asked = self.ledger.recorder.asked(&wish.name, wish.owner, Act::Acquire { mode: wish.mode });
        let start = Instant::now();
        let got = self.whim.fickle(lock.try_acquire()).await;
        in_time(start, wait);
        match self.sorted(got) {
            Some(Some(guard)) => {
                let entry = self.ledger.granted(asked, self.index, wish.owner, &guard);
                self.hold(Held::One(guard), vec![entry], wish.owner, wish.reenters.then_some(&wish)).await;
            }
            Some(None) => {
                assert!(!wish.is_alone, "{} is busy, and nobody else has ever asked for it", wish.name);
                asked.failed();
            }
            None => asked.unknown(),
        }
    }

    async fn take_several(&mut self) {
        self.asked += 1;
        let owner = 1_000 + self.number * 1_000 + self.asked;
        let wait = Duration::from_millis(self.whim.dice.below(5_000));
        let set = self.client.set().lock(NAMES[3]).lock(NAMES[0]).ttl("1500ms").wait(wait);
        let names = [NAMES[0], NAMES[3]];
        let mode = Mode::Exclusive;
        let asked = names.map(|name| self.ledger.recorder.asked(name, owner, Act::Acquire { mode }));
        let start = Instant::now();
        let got = self.whim.fickle(set.try_acquire()).await;
        in_time(start, Some(wait));
        let Some(Some(guard)) = self.sorted(got) else { return };
        let asked = names.into_iter().zip(asked);
        let entries = asked.map(|(name, asked)| {
            self.ledger.granted(asked, self.index, owner, guard.guard(name).expect("it is a member"))
        });
        let entries = entries.collect();
        self.hold(Held::Several(guard), entries, owner, None).await;
    }

    /// Uses what is held until it is done or lost, then lets go.
    async fn hold(&mut self, held: Held, entries: Vec<Entry>, owner: u64, reenters: Option<&Wish>) {
        let goes_on = self.whim.dice.chance(30);
        {
            let mut work = Box::pin(self.work(&held, owner, reenters));
            let is_done = tokio::select! {
                biased;
                () = watch(&held, &entries) => false,
                () = &mut work => true,
            };
            // Some overlook a loss: what they do then must do no harm.
            if !is_done && goes_on {
                work.await;
            }
        }
        entries.into_iter().for_each(Entry::released);
        match self.whim.dice.below(3) {
            0 => drop(held),
            1 => drop(self.whim.fickle(held.release()).await),
            _ => drop(self.whim.restless(held.release()).await),
        }
    }

    async fn work(&mut self, held: &Held, owner: u64, reenters: Option<&Wish>) {
        for _ in 0..self.whim.dice.below(5) {
            for guard in held.guards() {
                let asked = self.ledger.recorder.asked(guard.name(), owner, Act::Check);
                match guard.check() {
                    Ok(()) => asked.held(guard.deadline().as_nanos()),
                    Err(_) => asked.failed(),
                }
            }
            let guard = &held.guards()[0];
            let lease = Duration::from_millis(500 + 100 * self.whim.dice.below(30));
            match self.whim.dice.below(6) {
                0 => drop(self.whim.fickle(guard.extend(lease)).await),
                1 => {
                    let ensured = self.whim.fickle(guard.ensure(lease)).await;
                    let left = guard.remaining();
                    assert!(!matches!(ensured, Some(Ok(()))) || left >= lease, "{left:?} is not {lease:?}");
                }
                2..=3 => match reenters {
                    Some(wish) => Box::pin(self.enter_again(guard, wish)).await,
                    None => self.rest(300).await,
                },
                4 => self.rest(4_000).await,
                _ => self.rest(300).await,
            }
        }
    }

    /// Enters what it holds once more, and leaves that first.
    async fn enter_again(&mut self, outer: &Guard, wish: &Wish) {
        let asked = self.ledger.recorder.asked(&wish.name, wish.owner, Act::Acquire { mode: wish.mode });
        let wait = Duration::from_millis(self.whim.dice.below(2_000));
        let lock = wish.lock.clone().wait(wait);
        let start = Instant::now();
        let got = self.whim.fickle(lock.try_acquire()).await;
        in_time(start, Some(wait));
        match self.sorted(got) {
            Some(Some(inner)) => {
                assert_eq!(inner.fence(), outer.fence(), "an inner guard has the fence of the outer one");
                let entry = self.ledger.granted(asked, self.index, wish.owner, &inner);
                self.rest(200).await;
                entry.released();
                drop(self.whim.fickle(inner.release()).await);
            }
            Some(None) => asked.failed(),
            None => asked.unknown(),
        }
    }

    /// Breaks whoever holds something just now.
    async fn break_somebody(&mut self) {
        let name = NAMES[self.whim.dice.below(NAMES.len() as u64) as usize];
        let Some(state) = self.onlooker.inspect(name).await.unwrap() else { return };
        let Some(holder) = state.holders.first() else { return };
        self.ledger.breaks(holder.id);
        drop(self.whim.fickle(self.client.break_hold(name, holder.id, "it was its turn")).await);
    }

    /// What was got, `None` if nobody knows; any error that nothing explains is a defect.
    #[expect(clippy::option_option, reason = "unknown, not got, got: three answers")]
    fn sorted<T>(&self, got: Option<Result<Option<T>>>) -> Option<Option<T>> {
        match got {
            None => None,
            Some(Ok(got)) => Some(got),
            Some(Err(error)) => {
                assert!(self.explains(&error), "{error}");
                None
            }
        }
    }

    fn explains(&self, error: &Error) -> bool {
        match error.kind() {
            ErrorKind::Indeterminate | ErrorKind::Unavailable | ErrorKind::Lost => true,
            ErrorKind::Closed => self.ledger.is_closed(self.index),
            _ => false,
        }
    }

    fn rest(&mut self, most: u64) -> impl Future<Output = ()> + Send + use<> {
        let rest = if self.whim.dice.chance(30) { 0 } else { self.whim.dice.below(most) };
        let pass = self.whim.dice.pass();
        async move {
            pass.await;
            if rest > 0 {
                tokio::time::sleep(Duration::from_millis(rest)).await;
            }
        }
    }
}

/// Whoever says how long it waits is kept no longer, whatever the store does.
fn in_time(start: Instant, wait: Option<Duration>) {
    let passed = start.elapsed();
    let is_in_time = wait.is_none_or(|wait| passed <= wait + MARGIN);
    assert!(is_in_time, "ready to wait for {wait:?}, it was kept for {passed:?}");
}

/// Writes down what the guards are told, until the first is lost.
async fn watch(held: &Held, entries: &[Entry]) {
    let watched = held.guards().iter().map(|guard| {
        Box::pin(async move {
            let entry = entries.iter().find(|entry| entry.is_of(guard)).expect("every guard is written down");
            loop {
                let known = guard.deadline();
                tokio::select! {
                    biased;
                    _ = guard.lost() => return entry.lost(),
                    deadline = guard.renewed(known) => entry.renewed(deadline.as_nanos()),
                }
            }
        })
    });
    first(watched.collect()).await;
    // Who has lost one of several believes in none of them any more.
    entries.iter().for_each(Entry::lost);
}

/// Completes with the first of them.
async fn first<F: Future<Output = ()> + Unpin>(mut all: Vec<F>) {
    std::future::poll_fn(|context| {
        let is_ready = |future: &mut F| std::pin::Pin::new(future).poll(context).is_ready();
        if all.iter_mut().any(is_ready) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}
