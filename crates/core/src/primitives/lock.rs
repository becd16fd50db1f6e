//! One way to hold one name: exclusively, shared, or by permits; the options, and the ways to ask.

use std::{sync::Arc, time::Duration};

use super::{Guard, Options, Owner, asked::Asked};
use crate::{
    backend::{Busy, ClaimSpec, Life, Mode, Shape},
    call_site::CallSite,
    client::Client,
    engine::{
        acquire::{Acquired, Order, Patience, acquire, acquire_now},
        measure::Series,
    },
    error::{Error, Operation, Result},
    key::Key,
    span::Span,
};

/// A lock on one name. Made by a [`Client`]; holds nothing until it is asked to.
///
/// Cheap to clone and to keep: ask it as often as you like, each time for an acquisition of its own.
///
/// Four options are separate and never imply each other: [`wait`](Self::wait), how long to stand in line;
/// [`ttl`](Self::ttl), the lease; [`no_renew`](Self::no_renew), since it is renewed by default;
/// [`max_hold`](Self::max_hold), where renewal stops.
///
/// Lengths of time are [`Duration`]s or texts such as `"30s"`. A text that is not one is reported when the lock is
/// asked for, with the kind [`Config`](crate::ErrorKind::Config).
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), leasehold_core::Error> {
/// # use leasehold_core::{Client, backend::Memory};
/// let locks = Client::new(Memory::new());
/// let guard = locks.lock("order:42").wait("5s").ttl("30s").acquire().await?;
/// println!("held, with fence {}", guard.fence());
/// guard.release().await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a lock does nothing until it is acquired"]
pub struct Lock {
    client: Client,
    /// Or the name that is not one: what is wrong with it is said when the lock is asked for.
    key: Result<Key, Arc<str>>,
    mode: Asked,
    shape: Shape,
    options: Options,
    owner: Option<Owner>,
    location: CallSite,
}

/// What came of trying.
#[derive(Debug)]
#[must_use = "a held lock is released when its guard is dropped"]
pub enum Outcome {
    /// It is ours.
    Held(Guard),
    /// Somebody else has it: this says who.
    Busy(Busy),
}

impl Lock {
    #[track_caller]
    pub(super) fn new(client: &Client, name: &str, mode: Asked) -> Self {
        let options = Options::with_ttl(client.ttl());
        let key = Key::new(client.prefix(), name).map_err(|_| name.into());
        Self {
            client: client.clone(),
            key,
            mode,
            shape: Shape::default(),
            options,
            owner: None,
            location: CallSite::caller(),
        }
    }

    #[track_caller]
    pub(crate) fn exclusive(client: &Client, name: &str) -> Self {
        Self::new(client, name, Asked::Mode(Mode::Exclusive))
    }

    pub(super) fn shaped(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }

    /// How long to stand in line. Without it [`acquire`](Self::acquire) waits for ever, and
    /// [`try_acquire`](Self::try_acquire) and [`attempt`](Self::attempt) do not wait at all.
    pub fn wait(mut self, wait: impl Into<Span>) -> Self {
        self.options.wait = Some(wait.into());
        self
    }

    /// The lease: how long the lock survives a holder that can no longer renew it. 30 seconds unless said.
    /// It is renewed every third of that for as long as the guard lives.
    pub fn ttl(mut self, ttl: impl Into<Span>) -> Self {
        self.options.ttl = ttl.into();
        self
    }

    /// Where renewal stops: the lock is lost this long after it was acquired, at the latest.
    pub fn max_hold(mut self, max_hold: impl Into<Span>) -> Self {
        self.options.max_hold = Some(max_hold.into());
        self
    }

    /// Does not renew: the lock is lost when its first lease ends, unless it is extended by hand.
    pub fn no_renew(mut self) -> Self {
        self.options.renews = false;
        self
    }

    /// First come, first served, across all clients that ask for it. Those who do not ask for it let the line pass.
    pub fn fair(mut self) -> Self {
        self.options.fair = true;
        self
    }

    /// Lets a released lock pass to the next who waits for it within this client, without asking the store: so many
    /// hold it one after the other, `members` at most, and only then has the store to be asked again. It is for a name
    /// that many tasks of one process want at once: of a cohort of 64, one acquisition in 64 costs a request.
    ///
    /// Every guard has a fence of its own, since the store reserves as many as the cohort has members. The lock is
    /// passed on while at least half of its lease is left; whoever has it is told of its loss. Those who ask for it
    /// with another lease, label or size are no part of the cohort. It goes together with neither [`fair`](Self::fair),
    /// [`max_hold`](Self::max_hold), an [`Owner`] nor a [`ticket`](Self::ticket), and only with exclusive locks.
    ///
    /// What it costs: others wait longer. Each client stands in the store's line as one (where the store has a line),
    /// and whoever stands there is next once the members are through; those who ask for neither a cohort nor fairness
    /// let that line pass. So ask for a cohort everywhere, or be ready to wait longer. To operators the cohort is one acquisition
    /// with one [`id`](Guard::id): they see that, and a fence of its block, not who of the cohort has it; breaking it
    /// tells whoever does.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), leasehold_core::Error> {
    /// # use std::collections::BTreeSet;
    /// # use leasehold_core::{Client, backend::Memory};
    /// # let locks = Client::new(Memory::new());
    /// let counter = locks.lock("counter").cohort(64);
    /// let mut tasks = tokio::task::JoinSet::new();
    /// for _ in 0..1000 {
    ///     let counter = counter.clone();
    ///     tasks.spawn(async move {
    ///         let guard = counter.acquire().await?;
    ///         Ok::<_, leasehold_core::Error>(guard.fence())
    ///     });
    /// }
    /// let fences: BTreeSet<u64> = tasks.join_all().await.into_iter().collect::<Result<_, _>>()?;
    /// assert_eq!(fences.len(), 1000, "every guard has a fence of its own");
    /// # Ok(()) }
    /// ```
    pub fn cohort(mut self, members: u32) -> Self {
        self.options.cohort = members;
        self
    }

    /// Shares its fence with other programs that use the same lock, where the store knows such: on Redis, with
    /// Redisson's `RFencedLock`. Elsewhere it changes nothing; every guard has a fence.
    pub fn fenced(self) -> Self {
        self.shaped(Shape::Fenced)
    }

    /// Leaves the plainest trace the store has: on Redis, one value set if it is absent, as many other clients do.
    /// Elsewhere it changes nothing.
    pub fn plain(self) -> Self {
        self.shaped(Shape::Plain)
    }

    /// What the lock is for: shown to whoever finds it busy.
    pub fn label(mut self, label: &str) -> Self {
        self.options.label = Some(label.into());
        self
    }

    /// What its numbers are called, for the feature `metrics`: the name without what varies in it, such as `"order:{}"`.
    /// Unless said it is the beginning of the name, whole words without digits up to the first separator. A text of the
    /// program, so that it cannot have in it what names have; and only the first 200 of a client count by themselves, the
    /// rest as `other`.
    pub fn template(mut self, template: &'static str) -> Self {
        self.options.template = Some(template);
        self
    }

    /// Where in the code it is asked for: the line that made this lock, unless said. Operators see it.
    pub fn asked_at(mut self, location: CallSite) -> Self {
        self.location = location;
        self
    }

    /// Asks on behalf of an owner, who may enter a lock it holds once more. See [`Owner`].
    pub fn owner(mut self, owner: &Owner) -> Self {
        self.owner = Some(owner.clone());
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        match &self.key {
            Ok(key) => key.name(),
            Err(name) => name,
        }
    }

    /// The client it belongs to.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Acquires the lock, waiting for ever, or as long as [`wait`](Self::wait) says.
    ///
    /// # Errors
    /// `Busy` when the wait is over, with who holds it; any other kind as the store or the options have it.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the line. A request on its way is finished in the background, and what it won
    /// is given back.
    pub async fn acquire(&self) -> Result<Guard> {
        match self.ask(Patience::Forever).await? {
            Outcome::Held(guard) => Ok(guard),
            Outcome::Busy(busy) => Err(Error::from_busy(Operation::Acquire, busy).about(self.name())),
        }
    }

    /// Tries to acquire the lock: `None` if somebody else has it, at once or after [`wait`](Self::wait).
    ///
    /// # Cancel safety
    /// As for [`acquire`](Self::acquire).
    pub async fn try_acquire(&self) -> Result<Option<Guard>> {
        match self.ask(Patience::None).await? {
            Outcome::Held(guard) => Ok(Some(guard)),
            Outcome::Busy(_) => Ok(None),
        }
    }

    /// Tries to acquire the lock, and says who has it if somebody else does.
    ///
    /// # Cancel safety
    /// As for [`acquire`](Self::acquire).
    pub async fn attempt(&self) -> Result<Outcome> {
        self.ask(Patience::None).await
    }

    /// The lock, if it is to be had on the spot: the store is within this process, and nobody else has it or stands in line.
    /// `None` says nothing of the lock: ask by one of the others then, which also say what is wrong with the options.
    ///
    /// For callers that are no future and would have to make one, such as a service that is called.
    pub fn try_now(&self) -> Option<Guard> {
        if self.owner.is_some() || !self.client.info().capabilities.at_once {
            return None;
        }
        let order = self.checked_order(Life::Session, Options::no_patience).ok()?;
        let mode = order.spec.mode;
        acquire_now(self.client.engine(), order).map(|won| Guard::new(won.take(), mode))
    }

    /// Acquires the lock, does the work, releases the lock: the form to prefer, since it can neither forget the
    /// release nor overlook a loss. If the lock is lost, the work is dropped where it stands and the error is
    /// of the kind `Lost`, as it is for work that ends before it can be dropped; a panic in the work releases the lock too.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), leasehold_core::Error> {
    /// # use leasehold_core::{Client, Error, backend::Memory};
    /// # let locks = Client::new(Memory::new());
    /// let fence = locks.lock("order:42").scope(async |held| Ok::<_, Error>(held.fence())).await?;
    /// # assert_eq!(fence, 1); Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of the work; and, turned into the work's error type, those of acquiring and the loss of the lock.
    /// A release that fails after the work is done is not an error: the lease ends by itself.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work and releases the lock in the background.
    pub async fn scope<T, E, F>(&self, work: F) -> Result<T, E>
    where
        E: From<Error>,
        F: AsyncFnOnce(&Guard) -> Result<T, E>,
    {
        let guard = self.acquire().await?;
        let done = tokio::select! {
            biased;
            loss = guard.lost() => return Err(Error::from(loss).about(self.name()).into()),
            done = work(&guard) => done,
        };
        // Work that does not wait between the loss and its end was not stopped by it.
        let done = done.and_then(|value| guard.check().map(|()| value).map_err(E::from));
        if let Err(error) = guard.release().await {
            tracing::warn!(%error, "release after the work was done");
        }
        done
    }

    pub(super) async fn ask(&self, otherwise: Patience) -> Result<Outcome> {
        let order = self.order(Life::Session, otherwise)?;
        if let Some(owner) = &self.owner {
            let entered = Box::pin(owner.acquire(self.client.engine(), order)).await;
            return entered.map_err(|error| error.about(self.name()));
        }
        let mode = order.spec.mode;
        Ok(match acquire(self.client.engine(), order).await.map_err(|error| self.failed(error))? {
            Acquired::Held(won) => Outcome::Held(Guard::new(won.take(), mode)),
            Acquired::Busy(busy) => Outcome::Busy(busy),
        })
    }

    /// What went wrong on the way to this lock.
    pub(super) fn failed(&self, error: Error) -> Error {
        error.during(Operation::Acquire).about(self.name())
    }

    pub(super) fn order(&self, life: Life, otherwise: Patience) -> Result<Order> {
        let clock = &self.client.engine().clock;
        let order = self.checked_order(life, |options| options.patience(clock, otherwise));
        order.map_err(|error| error.about(short(self.name())))
    }

    fn checked_order(
        &self,
        life: Life,
        patience: impl FnOnce(&Options) -> Result<Patience>,
    ) -> Result<Order> {
        let engine = self.client.engine();
        let key = self.key()?;
        let mode = self.mode.check()?;
        let series = self.series(&key);
        let (ttl, keeping) = self.options.lease(series)?;
        let label = self.options.label()?;
        let fences = self.fences(mode, life)?;
        let patience = patience(&self.options)?;
        // A cohort stands in the store's line as one: only so is it sure that others get their turn.
        let fair = self.options.fair || (fences > 1 && engine.backend.info().capabilities.fair);
        let (id, who, shape) = (engine.ids.next(), engine.who.clone(), self.shape);
        let location = Some(self.location.clone());
        let spec = ClaimSpec { id, key, mode, shape, ttl, fair, life, who, label, location, fences };
        let spec = Arc::new(spec);
        Ok(Order { spec, keeping, patience })
    }

    /// Where it is counted.
    pub(super) fn series(&self, key: &Key) -> Series {
        self.client.engine().measures.series(self.options.template, key)
    }

    /// The key, or what is wrong with the name.
    pub(super) fn key(&self) -> Result<Key> {
        match &self.key {
            Ok(key) => Ok(key.clone()),
            Err(name) => Key::new(self.client.prefix(), name),
        }
    }

    fn fences(&self, mode: Mode, life: Life) -> Result<u64> {
        let fences = self.options.fences()?;
        let stranger = match (mode, life) {
            _ if fences == 1 => return Ok(fences),
            (Mode::Exclusive, Life::Session) if self.owner.is_none() => return Ok(fences),
            (_, Life::Detached) => "a ticket",
            (Mode::Exclusive, _) => "an owner",
            _ => "a lock that is shared",
        };
        let message = format!("{stranger} cannot be part of a cohort; ask for one or the other");
        Err(Error::config(Operation::Acquire, message))
    }

    /// Stands in for [`wait`](Self::wait) where several locks share one limit.
    pub(super) fn wait_at_most(&self, wait: Option<Duration>) -> Self {
        let mut lock = self.clone();
        lock.options.wait = wait.map(Span::from);
        lock
    }

    pub(super) fn asked(&self) -> Asked {
        self.mode
    }
}

/// A name fit for a message, however long what was given is.
fn short(name: &str) -> &str {
    let end = (0..=name.len().min(80)).rev().find(|&end| name.is_char_boundary(end));
    &name[..end.unwrap_or(0)]
}
