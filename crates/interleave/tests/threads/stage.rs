//! Where races happen: a store within the process, clients of it, and time that jumps.

use std::time::Duration;

use leasehold_core::{
    ClaimId, Client, Guard, Key, Result, Who,
    backend::{
        Cell, CellPage, CellWrite, Expect, LockPage, LockState, Memory, RecordStore, Recorded, StoreInfo,
        record::{Answer, Step},
    },
    time::{Clock, TICK},
};
use shuttle::{
    future::{JoinHandle, spawn, yield_now},
    sync::atomic::{AtomicUsize, Ordering},
};

/// The lease of everything here. A jump by a third of it makes renewals due.
pub(crate) const TTL: Duration = Duration::from_secs(30);

/// The name that is raced for.
pub(crate) const NAME: &str = "a";

/// A store and its time.
pub(crate) struct Stage {
    pub(crate) clock: Clock,
    store: Recorded<Memory>,
    clients: AtomicUsize,
    inside: std::sync::Arc<AtomicUsize>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let clock = Clock::test();
        let store = Memory::with_clock(clock.clone());
        Self { clock, store, clients: AtomicUsize::new(0), inside: std::sync::Arc::default() }
    }

    /// A client whose requests are answered on the spot.
    pub(crate) fn near(&self) -> Client {
        let client = Client::builder(self.store.clone()).clock(self.clock.clone());
        client.ttl(TTL).who(self.who()).build()
    }

    /// A client whose requests and answers are on their way for a while.
    pub(crate) fn far(&self) -> Client {
        let client = Client::builder(Recorded::new(Far(self.store.clone()))).clock(self.clock.clone());
        client.ttl(TTL).who(self.who()).build()
    }

    /// Ids that are the same in every run.
    fn who(&self) -> Who {
        let number = self.clients.fetch_add(1, Ordering::SeqCst);
        let mut who = Who::here();
        who.client = format!("00000000-0000-0000-0000-{number:012x}").parse().unwrap();
        who
    }

    /// Time jumps to when renewals are due.
    pub(crate) fn until_renewal(&self) {
        self.clock.suspend(TTL / 3);
    }

    /// Lets time pass until this is done, which must be long before the lease could end twice over.
    pub(crate) async fn in_time<T>(&self, task: JoinHandle<T>) -> T {
        for _ in 0..2 * TTL.as_secs() * 4 {
            if task.is_finished() {
                return task.await.unwrap();
            }
            self.clock.suspend(TICK);
            yield_now().await;
        }
        panic!("it is asleep, and nobody wakes it");
    }

    /// Uses what is held exclusively: nobody else may be inside meanwhile.
    pub(crate) fn uses(&self) -> impl Future<Output = ()> + Send + use<> {
        let inside = self.inside.clone();
        async move {
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two are inside at once");
            yield_now().await;
            inside.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Waits until a client has nothing unfinished; nothing of it may be left, neither in it nor in the store.
    pub(crate) async fn is_tidy(&self, client: &Client) {
        client.idle().await;
        let stats = client.stats();
        assert_eq!((stats.held, stats.waiting, stats.tidying), (0, 0, 0));
        let left = self.near().inspect(NAME).await.unwrap();
        assert!(left.is_none(), "left behind: {left:?}");
    }
}

/// Runs beside all others.
pub(crate) fn beside<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    spawn(work)
}

/// Polls a future now and then, and drops it after so many polls. `None` if it was not done by then.
pub(crate) async fn cut<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    for _ in 0..polls {
        let polled =
            std::future::poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context))).await;
        if let std::task::Poll::Ready(output) = polled {
            return Some(output);
        }
        yield_now().await;
    }
    None
}

/// Lets go: by a release, by a drop, or by a release that is cut off.
pub(crate) async fn let_go(how: usize, guard: Guard) {
    match how {
        0 => guard.release().await.unwrap(),
        1 => drop(guard),
        _ => drop(cut(1, guard.release()).await),
    }
}

/// A store that does not answer on the spot.
#[derive(Debug)]
struct Far(Recorded<Memory>);

impl RecordStore for Far {
    type Bell = <Memory as RecordStore>::Bell;

    fn info(&self) -> &StoreInfo {
        self.0.store().info()
    }

    async fn apply(&self, key: &Key, step: Step) -> Result<Answer> {
        yield_now().await;
        let answer = self.0.store().apply(key, step).await;
        yield_now().await;
        answer
    }

    fn bell(&self, key: &Key, id: ClaimId) -> Self::Bell {
        self.0.store().bell(key, id)
    }

    async fn inspect(&self, key: &Key) -> Result<Option<LockState>> {
        self.0.store().inspect(key).await
    }

    async fn list(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage> {
        self.0.store().list(prefix, cursor, limit).await
    }

    async fn read_cell(&self, name: &str) -> Result<Option<Cell>> {
        self.0.store().read_cell(name).await
    }

    async fn write_cell(
        &self,
        name: &str,
        expect: Expect,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<CellWrite> {
        self.0.store().write_cell(name, expect, value, ttl).await
    }

    async fn list_cells(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<CellPage> {
        self.0.store().list_cells(prefix, cursor, limit).await
    }

    async fn close(&self) -> Result<()> {
        Ok(())
    }
}
