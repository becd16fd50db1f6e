//! A connection to one store: what everything else is made from.

use std::{sync::Arc, time::Duration};

use crate::{
    backend::{Backend, Finding, LockPage, LockState, Release, Renew, Renewal, StoreInfo},
    engine::{
        Engine, acquire,
        farewell::Farewell,
        history::{self, Past},
        leave,
        time::Clock,
    },
    error::{Error, ErrorKind, Operation, Result},
    key::Key,
    primitives::{
        DEFAULT_TTL, Election, IdSpace, Job, JobPage, Latch, Lock, LockSet, RateLimiter, RwLock, Semaphore,
        Ticket, operate,
    },
    span::Span,
    who::Who,
};

/// Claims that may wait at a time, unless said.
const MAX_WAITING: usize = 100_000;

/// A client of one store. Clones share everything.
///
/// Its renewals and clean-ups run on the runtime it was made on. Locks and guards keep it alive; when the last of
/// all is gone its tasks end. [`shutdown`](Self::shutdown) ends it in order.
#[derive(Clone, Debug)]
pub struct Client {
    engine: Arc<Engine>,
    prefix: Arc<str>,
    ttl: Duration,
}

/// Makes a client with settings of its own.
#[derive(Debug)]
#[must_use = "a builder does nothing until it builds"]
pub struct ClientBuilder {
    backend: Arc<dyn Backend>,
    prefix: String,
    ttl: Duration,
    who: Who,
    clock: Clock,
    max_waiting: usize,
}

/// What a client is busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Locks held and kept.
    pub held: usize,
    /// Claims that wait.
    pub waiting: usize,
    /// Releases and withdrawals that go on in the background.
    pub tidying: usize,
}

impl Client {
    /// A client of this store.
    ///
    /// # Panics
    /// Outside of a tokio runtime: renewals need one to run on.
    pub fn new(backend: impl Backend) -> Self {
        Self::builder(backend).build()
    }

    /// A client of this store, with settings of its own.
    pub fn builder(backend: impl Backend) -> ClientBuilder {
        let backend = Arc::new(backend);
        ClientBuilder {
            backend,
            prefix: String::new(),
            ttl: DEFAULT_TTL,
            who: Who::here(),
            clock: Clock::boot(),
            max_waiting: MAX_WAITING,
        }
    }

    /// A lock that one at a time can hold.
    #[track_caller]
    pub fn lock(&self, name: &str) -> Lock {
        Lock::exclusive(self, name)
    }

    /// A lock that many readers or one writer can hold.
    pub fn rwlock(&self, name: &str) -> RwLock {
        RwLock::new(self, name)
    }

    /// A semaphore with so many permits.
    pub fn semaphore(&self, name: &str, of: u32) -> Semaphore {
        Semaphore::new(self, name, of)
    }

    /// A count-down latch.
    pub fn latch(&self, name: &str) -> Latch {
        Latch::new(self, name)
    }

    /// A rate limiter.
    pub fn rate_limiter(&self, name: &str) -> RateLimiter {
        RateLimiter::new(self, name)
    }

    /// An election of one leader among many candidates.
    #[track_caller]
    pub fn election(&self, name: &str) -> Election {
        Election::new(self, name)
    }

    /// A job that one of many processes runs, once for each slot of a schedule.
    pub fn job(&self, name: &str) -> Job {
        Job::new(self, name)
    }

    /// Ids that are unique among all who make them under this name.
    #[track_caller]
    pub fn ids(&self, name: &str) -> IdSpace {
        IdSpace::new(self, name)
    }

    /// Several locks to be taken together.
    pub fn set(&self) -> LockSet {
        LockSet::new(self)
    }

    /// What the store is, can do and promises.
    pub fn info(&self) -> &StoreInfo {
        self.engine.backend.info()
    }

    /// Who we are to others.
    pub fn who(&self) -> &Who {
        &self.engine.who
    }

    /// What goes before every name of this client.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The lease of locks that do not say otherwise.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// The store itself, for what only stores can do.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.engine.backend
    }

    /// The runtime that its renewals and clean-ups run on.
    pub fn runtime(&self) -> &tokio::runtime::Handle {
        self.engine.runtime()
    }

    /// Everything known of a name; `None` if it is free.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn inspect(&self, name: &str) -> Result<Option<LockState>> {
        let key = Key::existing(&self.prefix, name)?;
        let state = self.engine.backend.inspect(&key).await;
        let state = state.map_err(|error| error.during(Operation::Inspect).about(name))?;
        Ok(state.map(|state| self.without_prefix(state)))
    }

    /// Names in use that begin with `prefix`, a page at a time; `cursor` comes from the page before. What is in use all the
    /// while is shown; a name can come twice where the store walks its names while others come and go.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn list(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage> {
        let full = Key::beginning(&self.prefix, prefix)?;
        let page = self.engine.backend.list(&full, cursor, limit.clamp(1, 1000)).await;
        let LockPage { locks, next } = page.map_err(|error| error.during(Operation::Inspect))?;
        Ok(LockPage { locks: locks.into_iter().map(|state| self.without_prefix(state)).collect(), next })
    }

    /// Jobs whose names begin with `prefix`, a page at a time; `cursor` comes from the page before.
    ///
    /// A run is shown as going on though its process may have died since: [`Job::state`] looks at that, too.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn jobs(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<JobPage> {
        operate::list(self, prefix, cursor, limit).await
    }

    /// The last holds of a name, newest first: at most sixteen, for a day. Their holders wrote them down, after the fact,
    /// and only what lasted or waited for a quarter of a second or ended badly; of a ticket's lock whoever released it did,
    /// and of a broken one also whoever broke it: they know of no wait.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn history(&self, name: &str) -> Result<Vec<Past>> {
        let key = Key::existing(&self.prefix, name)?;
        let past = history::read(&*self.engine.backend, &key).await;
        past.map_err(|error| error.during(Operation::Inspect).about(name))
    }

    /// Renews a ticket's lease, so that it runs at least this long from now; says what was granted. Nothing shortens a lease:
    /// of less than the ticket was acquired with, says what is left, as far as the store tells.
    ///
    /// # Errors
    /// `Lost` if the ticket's lock is lost.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing: the request is finished in the background.
    pub async fn renew_ticket(&self, ticket: &Ticket, ttl: impl Into<Span>) -> Result<Duration> {
        let about = |error: Error| error.during(Operation::Renew).about(ticket.name());
        let ttl = ttl.into().get().map_err(|message| about(Error::config(Operation::Renew, message)))?;
        acquire::fits_ttl(ttl, &self.info().capabilities).map_err(about)?;
        let key = Key::existing(&self.prefix, ticket.name())?;
        let renew = Renew { key, id: ticket.id(), mode: ticket.mode(), ttl };
        let backend = self.engine.backend.clone();
        match self.engine.carry_on(async move { backend.renew(&[renew]).await }).await.pop() {
            Some(Ok(Renewal::Renewed { granted })) if ttl < ticket.ttl() => {
                Ok(granted.max(self.left(ticket).await))
            }
            Some(Ok(Renewal::Renewed { granted })) => Ok(granted),
            Some(Ok(Renewal::Lost(broken))) => Err(about(Error::from_loss(Operation::Renew, broken.into()))),
            Some(Err(error)) => Err(about(error)),
            None => Err(about(Error::new(ErrorKind::Internal, Operation::Renew, "the store gave no answer"))),
        }
    }

    /// What is left of a ticket's lease; nothing if that cannot be told.
    async fn left(&self, ticket: &Ticket) -> Duration {
        let state = self.inspect(ticket.name()).await.ok().flatten();
        let holder = state.iter().flat_map(|state| &state.holders).find(|holder| holder.id == ticket.id());
        holder.map(|holder| holder.remaining).unwrap_or_default()
    }

    /// Releases a ticket's lock.
    ///
    /// # Errors
    /// `Lost` if it was lost before.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing: the request is finished in the background.
    pub async fn release_ticket(&self, ticket: &Ticket) -> Result<()> {
        let about = |error: Error| error.during(Operation::Release).about(ticket.name());
        let key = Key::existing(&self.prefix, ticket.name())?;
        let (engine, id, mode, fence) = (self.engine.clone(), ticket.id(), ticket.mode(), ticket.fence());
        let work = async move { leave::release_detached(&engine, &key, id, mode, fence).await };
        let released = self.engine.carry_on(work).await;
        match released.map_err(about)? {
            Release::Released => Ok(()),
            Release::Gone(broken) => Err(about(Error::from_loss(Operation::Release, broken.into()))),
        }
    }

    /// Examines the store: is it set up so that its locks are worth what [`info`](Self::info) says? The findings
    /// come in an order of the store's own.
    ///
    /// # Errors
    /// Those of a store that cannot be asked at all. What it does not let us see is a finding of its own.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn diagnose(&self) -> Result<Vec<Finding>> {
        let found = self.engine.backend.diagnose(&Key::beginning(&self.prefix, "")?).await;
        let mut found = found.map_err(|error| error.during(Operation::Inspect))?;
        let can = &self.info().capabilities;
        if can.cells && !can.clock {
            found.push(clockless());
        }
        Ok(found)
    }

    /// Whether the store has anything against this name, such as braces that tear it apart in a cluster. Asks nobody.
    ///
    /// # Errors
    /// `Config` for a name that no store accepts.
    pub fn diagnose_name(&self, name: &str) -> Result<Vec<Finding>> {
        Ok(self.engine.backend.diagnose_name(&Key::new(&self.prefix, name)?))
    }

    /// What this client is busy with.
    pub fn stats(&self) -> Stats {
        let (held, waiting, tidying) = self.engine.counts();
        Stats { held, waiting, tidying }
    }

    /// Completes when nothing goes on in the background any more: dropped guards are released, abandoned requests
    /// are withdrawn.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn idle(&self) {
        self.engine.idle().await;
    }

    /// Ends this client and all its clones: refuses new requests, tells those who wait, releases what is held, and
    /// closes the store, within this time. Tells what was still held: in a service that let its requests end first,
    /// nothing is. Runs of jobs are cut off, or come to their end if they [finish](crate::Job::finish_on_loss), and it is
    /// written down how they ended: so keep polling those while this is awaited, or drop them.
    ///
    /// # Errors
    /// `Unavailable` if not everything could be released in time, with the names, or runs of jobs go on; it ends with its
    /// leases.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the client closed; releases go on in the background.
    pub async fn shutdown(&self, within: impl Into<Span>) -> Result<Farewell> {
        let within = within.into().get().map_err(|message| Error::config(Operation::Shutdown, message))?;
        self.engine.shutdown(within).await
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    fn without_prefix(&self, mut state: LockState) -> LockState {
        if let Some(name) = state.name.strip_prefix(&*self.prefix) {
            state.name = name.to_owned();
        }
        state
    }
}

/// What jobs on a store without a clock have to know.
fn clockless() -> Finding {
    Finding::note("no-clock", "this store tells no time, so the slots of jobs go by the clocks of the machines that run them")
        .because("no slot is run twice all the same, but a machine whose clock is ahead runs slots early, and after it the others wait until theirs are as far")
        .remedy("keep the clocks right with NTP, or keep jobs on a store that has a clock")
}

impl ClientBuilder {
    /// What goes before every name: text that ends with its only colon, such as `shop:` or `prod/shop:`.
    ///
    /// Clients with two prefixes never meet: neither can name, list, show or break what is the other's. One without a
    /// prefix has every name as it is in the store, also `shop:a`. Another text is refused by whatever is asked of the
    /// client, with the kind `Config`.
    pub fn prefix(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// The lease of locks that do not say otherwise.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Who we are to others.
    pub fn who(mut self, who: Who) -> Self {
        self.who = who;
        self
    }

    /// How many claims of this client may wait at a time, for whatever names: 100 000 unless said. One more is refused
    /// with the kind [`Capacity`](ErrorKind::Capacity): a program that waits without end runs out of memory otherwise.
    /// Tries that do not wait are not counted.
    pub fn max_waiting(mut self, claims: usize) -> Self {
        self.max_waiting = claims;
        self
    }

    /// Another clock than the machine's, for tests.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Makes the client.
    ///
    /// # Panics
    /// Outside of a tokio runtime: renewals need one to run on.
    pub fn build(self) -> Client {
        let engine = Engine::start(self.backend, self.clock, Arc::new(self.who), self.max_waiting);
        Client { engine, prefix: self.prefix.into(), ttl: self.ttl }
    }
}
