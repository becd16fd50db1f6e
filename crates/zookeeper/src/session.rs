//! The session: one connection to the ensemble, made anew when it has expired.
//!
//! Each session has a node of its own. Writing to it is how we prove, to ourselves, that the leader still knows us
//! (reads do not: a follower that has lost its leader answers them for a while), and how we learn the server's time.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold_core::{
    Error, ErrorKind, Operation, Result,
    time::{Clock, Instant},
};
use tokio::sync::RwLock;
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, Error as ZkError};

use crate::{
    config::ZooKeeperConfig,
    error::{Fault, not_connected, or_none},
    names::SESSIONS,
};

/// One session with the ensemble.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: Client,
    /// The node that shows it lives.
    node: String,
    command_timeout: Duration,
    acls: Acls<'static>,
    /// The server's clock in milliseconds, when we heard of it.
    heard: Mutex<(i64, Instant)>,
}

impl Session {
    async fn open(config: &ZooKeeperConfig) -> Result<Self> {
        // A server that says nothing is left for another long before the lease ends.
        let silence = config.command_timeout.min(config.session_timeout * 2 / 5);
        let mut connector = Client::connector()
            .with_session_timeout(config.session_timeout)
            .with_connection_timeout(silence)
            .with_fail_eagerly();
        if let Some((user, password)) = &config.credentials {
            connector = connector.with_auth("digest", format!("{user}:{password}").as_bytes());
        }
        let servers = config.servers.join(",");
        let connected = tokio::time::timeout(config.connect_timeout, connector.connect(&servers)).await;
        let client = connected.unwrap_or(Err(ZkError::Timeout)).map_err(|error| not_connected(&error))?;
        let acls = if config.credentials.is_some() { Acls::creator_all() } else { Acls::anyone_all() };
        let node = format!("{}/{SESSIONS}/{}", config.root, client.session_id());
        let heard = Mutex::new((0, Clock::boot().now()));
        let session = Self { client, node, command_timeout: config.command_timeout, acls, heard };
        session.appear().await.map_err(|fault| fault.into_error(Operation::Connect))?;
        Ok(session)
    }

    /// Makes the session's own node.
    async fn appear(&self) -> Result<(), Fault> {
        let options = CreateMode::Ephemeral.with_acls(self.acls);
        let (stat, _) = self.create(&self.node, b"", &options).await?;
        self.hear(stat.mtime);
        Ok(())
    }

    /// Its id with the server.
    pub(crate) fn id(&self) -> i64 {
        self.client.session_id().0
    }

    /// The longest lease it can carry. See the crate's documentation for why it is half of its time-out.
    pub(crate) fn lease(&self) -> Duration {
        self.client.session_timeout() / 2
    }

    pub(crate) fn is_over(&self) -> bool {
        self.client.state().is_terminated()
    }

    /// Proves that the leader knows this session, and returns the server's time in milliseconds. The request is on its
    /// way as soon as this returns; whatever is asked after it is answered after it.
    pub(crate) fn prove(&self) -> impl Future<Output = Result<i64, Fault>> + Send {
        let written = self.client.set_data(&self.node, b"", None);
        async move {
            match self.answered(written).await {
                Ok(stat) => Ok(self.hear(stat.mtime)),
                // Somebody removed the node. That the leader said so is the proof.
                Err(fault) if fault.is_no_node() => Ok(self.now()),
                Err(fault) => Err(fault),
            }
        }
    }

    /// The server's clock in milliseconds, about: for people.
    pub(crate) fn now(&self) -> i64 {
        let (millis, at) = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        millis + i64::try_from(at.until(Clock::boot().now()).as_millis()).unwrap_or(0)
    }

    fn hear(&self, millis: i64) -> i64 {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = (millis, Clock::boot().now());
        millis
    }

    /// An answer, or that there is none in time.
    pub(crate) async fn answered<T>(
        &self,
        request: impl Future<Output = Result<T, ZkError>>,
    ) -> Result<T, Fault> {
        match tokio::time::timeout(self.command_timeout, request).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Fault::Silent),
        }
    }

    /// The options of a node of ours.
    pub(crate) fn options(&self, mode: CreateMode) -> CreateOptions<'static> {
        mode.with_acls(self.acls)
    }

    /// Creates a node, and the containers above it if they are missing.
    pub(crate) async fn create(
        &self,
        path: &str,
        data: &[u8],
        options: &CreateOptions<'_>,
    ) -> Result<(zookeeper_client::Stat, zookeeper_client::CreateSequence), Fault> {
        let first = self.answered(self.client.create(path, data, options)).await;
        match first {
            Err(fault) if fault.is_no_node() => {
                self.make_parent(path).await?;
                self.answered(self.client.create(path, data, options)).await
            }
            first => first,
        }
    }

    /// Creates what is missing above a node. Containers: the server removes them when they have been empty for a while.
    pub(crate) async fn make_parent(&self, path: &str) -> Result<(), Fault> {
        let parent = path.rsplit_once('/').map_or("/", |(parent, _)| parent);
        let options = self.options(CreateMode::Container);
        self.answered(self.client.mkdir(parent, &options)).await
    }

    /// The children of a node; none if there is no such node.
    pub(crate) async fn children(&self, path: &str) -> Result<Vec<String>, Fault> {
        or_none(self.answered(self.client.list_children(path)).await)
    }

    /// Lets this session's server catch up with the leader, so that what is read next is no older than this call.
    pub(crate) async fn catch_up(&self, path: &str) -> Result<(), Fault> {
        self.answered(self.client.sync(path)).await
    }

    /// Deletes a node; says whether it was there.
    pub(crate) async fn delete(&self, path: &str) -> Result<bool, Fault> {
        match self.answered(self.client.delete(path, None)).await {
            Ok(()) => Ok(true),
            Err(fault) if fault.is_no_node() => Ok(false),
            Err(fault) => Err(fault),
        }
    }
}

/// The session in use.
#[derive(Debug)]
pub(crate) struct Link {
    config: ZooKeeperConfig,
    current: RwLock<Option<Arc<Session>>>,
    closed: AtomicBool,
}

impl Link {
    pub(crate) async fn open(config: ZooKeeperConfig) -> Result<Self> {
        let session = Session::open(&config).await?;
        Ok(Self { config, current: RwLock::new(Some(Arc::new(session))), closed: AtomicBool::new(false) })
    }

    /// The session in use, or a new one if that is over.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, Fault> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(Fault::NotSent(closed()));
        }
        if let Some(session) = self.current.read().await.as_ref().filter(|session| !session.is_over()) {
            return Ok(session.clone());
        }
        let mut current = self.current.write().await;
        if let Some(session) = current.as_ref().filter(|session| !session.is_over()) {
            return Ok(session.clone());
        }
        let session = Arc::new(Session::open(&self.config).await.map_err(Fault::NotSent)?);
        *current = Some(session.clone());
        Ok(session)
    }

    /// Ends the session and waits until the server was told, as long as a command may take.
    pub(crate) async fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let Some(session) = self.current.write().await.take() else { return };
        let mut states = session.client.state_watcher();
        // Requests under way have the session as well; it ends with the last of them.
        drop(session);
        let ended = async { while !states.changed().await.is_terminated() {} };
        if tokio::time::timeout(self.config.command_timeout, ended).await.is_err() {
            tracing::debug!("the session did not end in time; the server ends it by itself");
        }
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, Operation::Acquire, "this store is closed; connect a new one")
}
