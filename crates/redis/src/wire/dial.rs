//! Making connections: to one server, or to whichever server is the primary at that moment.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ErrorKind, IntoConnectionInfo, ProtocolVersion, PushInfo,
    PushKind, RedisConnectionInfo, RedisError, TlsCertificates, Value,
    aio::{MultiplexedConnection, PubSub},
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
};

use tokio::sync::Notify;

use crate::{
    answer::text,
    config::{Address, RedisConfig},
};

/// How often a silent connection is probed.
const PROBE: Duration = Duration::from_secs(10);

/// How to reach one server, as often as needed.
#[derive(Clone, Debug)]
pub(crate) struct Dialer {
    config: Arc<RedisConfig>,
    to: Whereabouts,
    /// Whoever wants to know that a connection was lost or could not be made.
    trouble: Option<Arc<Notify>>,
}

/// Where a server is.
#[derive(Clone, Debug)]
pub(crate) enum Whereabouts {
    /// Always here.
    Fixed(Address),
    /// Wherever the primary is by then.
    Found(Arc<dyn Find>),
}

/// Finds the primary of several servers.
#[async_trait]
pub(crate) trait Find: fmt::Debug + Send + Sync {
    /// Where it is now, as far as can be found out. Dropping it leaves nothing behind.
    async fn primary(&self) -> Result<Address, RedisError>;
}

/// A connection for commands, and whether it is known to be lost.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) connection: MultiplexedConnection,
    pub(crate) to: Address,
    lost: Arc<AtomicBool>,
    trouble: Option<Arc<Notify>>,
}

impl Line {
    /// Told by the connection itself, also while nothing is under way: what is sent on it would not arrive.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    pub(crate) fn give_up(&self) {
        self.lost.store(true, Ordering::Release);
        tell(self.trouble.as_ref());
    }
}

impl Dialer {
    pub(crate) fn new(config: Arc<RedisConfig>, to: Whereabouts) -> Self {
        Self { config, to, trouble: None }
    }

    /// From now on somebody is told of connections that are lost or cannot be made.
    pub(crate) fn telling(self, trouble: Option<Arc<Notify>>) -> Self {
        Self { trouble, ..self }
    }

    /// How long an answer may take.
    pub(crate) fn patience(&self) -> Duration {
        self.config.command_timeout
    }

    /// Opens a connection for commands.
    pub(crate) async fn commands(&self) -> Result<Line, RedisError> {
        let lost = Arc::new(AtomicBool::new(false));
        let flag = lost.clone();
        // Only RESP3 connections tell of their end while nobody asks them anything.
        let told = move |push: PushInfo| {
            if push.kind == PushKind::Disconnection {
                flag.store(true, Ordering::Release);
            }
            Ok::<(), redis::aio::SendError>(())
        };
        let (connection, to) = self.connection(told).await?;
        Ok(Line { connection, to, lost, trouble: self.trouble.clone() })
    }

    /// Opens a connection that tells what comes unasked, and says where to.
    pub(crate) async fn connection<T>(
        &self,
        told: impl Fn(PushInfo) -> Result<(), T> + Send + Sync + 'static,
    ) -> Result<(MultiplexedConnection, Address), RedisError> {
        let trouble = self.trouble.clone();
        let told = move |push: PushInfo| {
            if push.kind == PushKind::Disconnection {
                tell(trouble.as_ref());
            }
            told(push)
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.config.connect_timeout))
            .set_response_timeout(None)
            .set_pipeline_buffer_size(1024)
            .set_push_sender(told);
        let dialing = async {
            let to = self.whereabouts().await?;
            let client = self.client(&to, ProtocolVersion::RESP3)?;
            let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
            if let Whereabouts::Found(_) = self.to {
                insist_on_primary(&mut connection, &to).await?;
            }
            Ok((connection, to))
        };
        self.in_time(dialing).await.inspect_err(|_| tell(self.trouble.as_ref()))
    }

    /// Opens a connection for messages, and says where to.
    pub(crate) async fn messages(&self) -> Result<(PubSub, Address), RedisError> {
        let dialing = async {
            let to = self.whereabouts().await?;
            Ok((self.client(&to, ProtocolVersion::RESP2)?.get_async_pubsub().await?, to))
        };
        self.in_time(dialing).await
    }

    async fn whereabouts(&self) -> Result<Address, RedisError> {
        match &self.to {
            Whereabouts::Fixed(address) => Ok(address.clone()),
            Whereabouts::Found(find) => find.primary().await,
        }
    }

    async fn in_time<T>(
        &self,
        dialing: impl Future<Output = Result<T, RedisError>>,
    ) -> Result<T, RedisError> {
        let dialed = tokio::time::timeout(self.config.connect_timeout, dialing).await;
        dialed.unwrap_or_else(|_| Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()))
    }

    fn client(&self, to: &Address, protocol: ProtocolVersion) -> Result<Client, RedisError> {
        let config = &self.config;
        let mut settings = RedisConnectionInfo::default()
            .set_db(config.db.into())
            .set_protocol(protocol)
            .set_skip_set_lib_name();
        if let Some(username) = &config.username {
            settings = settings.set_username(username);
        }
        if let Some(password) = &config.password {
            settings = settings.set_password(password);
        }
        let address = match to {
            Address::Tcp { host, port, tls: false } => ConnectionAddr::Tcp(host.clone(), *port),
            Address::Tcp { host, port, tls: true } => {
                ConnectionAddr::TcpTls { host: host.clone(), port: *port, insecure: false, tls_params: None }
            }
            Address::Unix(path) => ConnectionAddr::Unix(path.clone()),
        };
        // A connection whose other end is gone without a word is noticed though nothing is sent on it.
        let probes = TcpKeepalive::new().with_time(PROBE).with_interval(PROBE);
        let tcp = TcpSettings::default().set_nodelay(true).set_keepalive(probes);
        let info = address.into_connection_info()?.set_redis_settings(settings).set_tcp_settings(tcp);
        if !matches!(to, Address::Tcp { tls: true, .. }) {
            return Client::open(info);
        }
        // Where several crates bring one, rustls does not choose by itself. Whoever chose before us is right.
        drop(rustls::crypto::ring::default_provider().install_default());
        let root_cert = config.tls_ca.as_deref().map(std::fs::read).transpose()?;
        Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert })
    }
}

fn tell(trouble: Option<&Arc<Notify>>) {
    if let Some(trouble) = trouble {
        trouble.notify_one();
    }
}

/// What was found to be the primary may be one no more: then it says so itself.
async fn insist_on_primary(connection: &mut MultiplexedConnection, to: &Address) -> Result<(), RedisError> {
    let role: Value = redis::cmd("ROLE").query_async(connection).await?;
    let is_primary =
        matches!(&role, Value::Array(parts) if parts.first().and_then(text).as_deref() == Some("master"));
    if is_primary {
        return Ok(());
    }
    let message = format!("{to} is no primary at the moment");
    Err(RedisError::from((ErrorKind::Io, "a failover seems to be under way", message)))
}

/// Pauses between tries to connect: the first try is at once, then longer and longer, spread by chance so that a fleet
/// does not come back all at the same moment.
#[derive(Debug, Default)]
pub(crate) struct Pause(Mutex<Duration>);

impl Pause {
    const LEAST: Duration = Duration::from_millis(25);
    const MOST: Duration = Duration::from_secs(2);

    /// After a try that failed.
    pub(crate) fn next(&self) -> Duration {
        let mut pause = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *pause = (*pause * 2).clamp(Self::LEAST, Self::MOST);
        pause.mul_f64(0.5 + chance() / 2.0)
    }

    /// After one that succeeded.
    pub(crate) fn reset(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Duration::ZERO;
    }
}

/// A number from 0 to 1.
pub(crate) fn chance() -> f64 {
    let mut byte = [0];
    // Without randomness all get the same: there is no spread, and nothing worse.
    match getrandom::fill(&mut byte) {
        Ok(()) => f64::from(byte[0]) / 255.0,
        Err(_) => 0.5,
    }
}
