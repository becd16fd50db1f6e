//! What the routes share: the store, who may do what, and what was seen of the store.

use std::{
    collections::BTreeSet,
    fmt,
    num::NonZeroU32,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use leasehold::Client;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::{access::Access, live::Live, rates::Rates, routes::store::Examined, store::Store};

/// The most streams at a time, unless said.
const STREAMS: usize = 1024;

/// The most requests a second of each who asks, unless said.
const RATE: NonZeroU32 = NonZeroU32::new(2000).expect("not zero");

/// One store, and those who may look at it. Clones share everything.
///
/// It looks at the store in the background, on the client's runtime, until the last clone is gone.
#[derive(Clone)]
pub struct Console(Arc<Inner>);

struct Inner {
    store: Store,
    access: Access,
    hosts: BTreeSet<String>,
    page: Option<PathBuf>,
    started: Instant,
    live: Arc<Live>,
    examined: Examined,
    streams: Arc<Semaphore>,
    max_streams: usize,
    rates: Rates,
    stopping: watch::Sender<bool>,
}

/// Makes a console with settings of its own.
#[derive(Debug)]
#[must_use = "a builder does nothing until it builds"]
pub struct ConsoleBuilder {
    client: Client,
    access: Access,
    hosts: BTreeSet<String>,
    page: Option<PathBuf>,
    max_streams: usize,
    max_rate: NonZeroU32,
}

impl Console {
    /// A console of this client's store.
    pub fn builder(client: Client, access: Access) -> ConsoleBuilder {
        let (hosts, page) = (BTreeSet::new(), None);
        ConsoleBuilder { client, access, hosts, page, max_streams: STREAMS, max_rate: RATE }
    }

    /// Ends streams and waits, so that their connections can close.
    pub fn stop(&self) {
        self.0.stopping.send_replace(true);
    }

    /// Completes when the console is told to stop.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub(crate) async fn stopped(&self) {
        let mut stopping = self.0.stopping.subscribe();
        // The sender lives as long as we do.
        drop(stopping.wait_for(|stopping| *stopping).await);
    }

    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }

    pub(crate) fn access(&self) -> &Access {
        &self.0.access
    }

    pub(crate) fn live(&self) -> &Arc<Live> {
        &self.0.live
    }

    pub(crate) fn examined(&self) -> &Examined {
        &self.0.examined
    }

    pub(crate) fn page_folder(&self) -> Option<&Path> {
        self.0.page.as_deref()
    }

    pub(crate) fn started(&self) -> Instant {
        self.0.started
    }

    /// Whether this is a name of ours. Addresses always are: nobody can point a name of theirs at a page that is
    /// asked for by address.
    pub(crate) fn is_ours(&self, host: &str) -> bool {
        let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        literal.parse::<std::net::IpAddr>().is_ok()
            || host.eq_ignore_ascii_case("localhost")
            || self.0.hosts.contains(&host.to_ascii_lowercase())
    }

    pub(crate) fn rates(&self) -> &Rates {
        &self.0.rates
    }

    /// A place among the streams; `None` if there are too many.
    pub(crate) fn stream(&self) -> Option<OwnedSemaphorePermit> {
        self.0.streams.clone().try_acquire_owned().ok()
    }

    /// How many streams there are, and how many there may be.
    pub(crate) fn streams(&self) -> (usize, usize) {
        let max = self.0.max_streams;
        (max - self.0.streams.available_permits(), max)
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").field("access", &self.0.access).finish_non_exhaustive()
    }
}

impl ConsoleBuilder {
    /// Another name by which the server is reached: a request for any other is refused.
    pub fn host(mut self, host: &str) -> Self {
        self.hosts.insert(host.to_ascii_lowercase());
        self
    }

    /// Serves the page from a folder, for those who work on it.
    pub fn page(mut self, folder: PathBuf) -> Self {
        self.page = Some(folder);
        self
    }

    /// The most streams at a time.
    pub fn max_streams(mut self, streams: usize) -> Self {
        self.max_streams = streams;
        self
    }

    /// The most requests a second of each token, and of each address that sends none. A stream is one request.
    pub fn max_rate(mut self, requests: NonZeroU32) -> Self {
        self.max_rate = requests;
        self
    }

    /// Makes the console, and begins to look at the store.
    pub fn build(self) -> Console {
        let Self { client, access, hosts, page, max_streams, max_rate } = self;
        let store = Store::new(client);
        let live = Live::start(store.clone());
        Console(Arc::new(Inner {
            store,
            access,
            hosts,
            page,
            started: Instant::now(),
            live,
            examined: Examined::default(),
            streams: Arc::new(Semaphore::new(max_streams)),
            max_streams,
            rates: Rates::new(max_rate),
            stopping: watch::Sender::new(false),
        }))
    }
}
