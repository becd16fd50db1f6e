//! What a case stands on: one store, as many clients of it as it likes, faults on order, names nobody else has.

use std::{
    any::Any,
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold_core::{
    Client, ClientBuilder, ClientId, Who,
    backend::{Backend, Capabilities, RecordStore, Recorded},
    time::Clock,
};

use crate::scripted::{Script, Scripted, ScriptedRecords};

type Opened = Pin<Box<dyn Future<Output = Arc<dyn Backend>> + Send>>;

/// One store to test. Clones are the same fixture.
#[derive(Clone)]
pub struct Fixture(Arc<Parts>);

struct Parts {
    open: Box<dyn Fn(Script) -> Opened + Send + Sync>,
    clock: Option<Clock>,
    bell: bool,
    keep: Mutex<Vec<Box<dyn Any + Send>>>,
    mark: String,
    next: AtomicU64,
}

impl Fixture {
    /// A record store: `open` opens one more session of it, as another process would. Faults are played below its
    /// claims, where requests that were held back arrive after a release.
    pub fn records<S, F>(open: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        S: RecordStore,
        F: Future<Output = Recorded<S>> + Send + 'static,
    {
        Self::with(Box::new(move |script| {
            let opened = open();
            Box::pin(async move { Arc::new(ScriptedRecords::new(opened.await, script)) as Arc<dyn Backend> })
        }))
    }

    /// Any other store: `open` opens one more session of it, as another process would. Faults are played above its
    /// claims.
    pub fn backends<B, F>(open: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        B: Backend,
        F: Future<Output = B> + Send + 'static,
    {
        Self::with(Box::new(move |script| {
            let opened = open();
            Box::pin(async move { Arc::new(Scripted::new(opened.await, script)) as Arc<dyn Backend> })
        }))
    }

    fn with(open: Box<dyn Fn(Script) -> Opened + Send + Sync>) -> Self {
        let mark = ClientId::random().to_string()[..8].to_owned();
        Self(Arc::new(Parts {
            open,
            clock: None,
            bell: true,
            keep: Mutex::default(),
            mark,
            next: AtomicU64::new(1),
        }))
    }

    /// The clock the store is on, where a test may turn it: clients get the same.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Self {
        Self(Arc::new(Parts { clock: Some(clock), ..self.parts() }))
    }

    /// Says that nothing wakes those who wait for this store: they look again at its polling pause.
    #[must_use]
    pub fn without_bell(self) -> Self {
        Self(Arc::new(Parts { bell: false, ..self.parts() }))
    }

    fn parts(self) -> Parts {
        let Ok(parts) = Arc::try_unwrap(self.0) else { panic!("finish the fixture before it is cloned") };
        parts
    }

    /// Keeps something alive for as long as the fixture: a folder, a server.
    #[must_use]
    pub fn keep(self, thing: impl Any + Send) -> Self {
        self.0.keep.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(thing));
        self
    }

    /// A fresh client of the store, in a session of its own.
    pub(super) async fn client(&self) -> Client {
        self.scripted(&Script::new()).await
    }

    /// A fresh client whose store plays this script.
    pub(super) async fn scripted(&self, script: &Script) -> Client {
        self.builder(script).await.build()
    }

    /// A fresh client with settings of its own, whose store plays this script.
    pub(super) async fn builder(&self, script: &Script) -> ClientBuilder {
        let backend = Scripted::over(self.backend(script).await, Script::aside());
        Client::builder(backend).clock(self.time())
    }

    /// A fresh session of the store itself, playing this script.
    pub(super) async fn backend(&self, script: &Script) -> Arc<dyn Backend> {
        (self.0.open)(script.clone()).await
    }

    /// The clock that clients of this fixture are on.
    pub(super) fn time(&self) -> Clock {
        self.0.clock.clone().unwrap_or_else(Clock::boot)
    }

    /// Whether those who wait are woken.
    pub(super) fn has_bell(&self) -> bool {
        self.0.bell
    }

    /// Whether time is the test's to turn.
    pub(super) fn is_virtual(&self) -> bool {
        self.0.clock.is_some()
    }

    /// What the store can do.
    pub(super) async fn can(&self) -> Capabilities {
        self.backend(&Script::new()).await.info().capabilities
    }

    /// A name nobody else uses, in this run or another.
    pub(super) fn name(&self, what: &str) -> String {
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        format!("{what}-{number}-{}", self.0.mark)
    }

    /// A lease short enough to wait for its end, and long enough to be renewed in time on a loaded machine.
    pub(super) async fn brief(&self) -> Duration {
        self.can().await.min_ttl.max(Duration::from_secs(1))
    }

    /// Somebody else to be told apart from us.
    pub(super) fn stranger() -> Who {
        Who::here().with_program("stranger")
    }
}

impl fmt::Debug for Fixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fixture").field("clock", &self.0.clock).finish_non_exhaustive()
    }
}
