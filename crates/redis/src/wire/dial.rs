//! Making connections to one server.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo, ProtocolVersion, PushInfo, PushKind,
    RedisConnectionInfo, RedisError, TlsCertificates,
    aio::{MultiplexedConnection, PubSub},
};

use crate::config::{Address, RedisConfig};

/// How to reach one server, as often as needed.
#[derive(Clone, Debug)]
pub(crate) struct Dialer {
    config: Arc<RedisConfig>,
}

/// A connection for commands, and whether it is known to be lost.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) connection: MultiplexedConnection,
    lost: Arc<AtomicBool>,
}

impl Line {
    /// Told by the connection itself, also while nothing is under way: what is sent on it would not arrive.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    pub(crate) fn give_up(&self) {
        self.lost.store(true, Ordering::Release);
    }
}

impl Dialer {
    pub(crate) fn new(config: Arc<RedisConfig>) -> Self {
        Self { config }
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
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.config.connect_timeout))
            .set_response_timeout(None)
            .set_pipeline_buffer_size(1024)
            .set_push_sender(told);
        let dialing = async {
            let client = self.client(ProtocolVersion::RESP3)?;
            client.get_multiplexed_async_connection_with_config(&config).await
        };
        let connection = self.in_time(dialing).await?;
        Ok(Line { connection, lost })
    }

    /// Opens a connection for messages.
    pub(crate) async fn messages(&self) -> Result<PubSub, RedisError> {
        let dialing = async { self.client(ProtocolVersion::RESP2)?.get_async_pubsub().await };
        self.in_time(dialing).await
    }

    async fn in_time<T>(
        &self,
        dialing: impl Future<Output = Result<T, RedisError>>,
    ) -> Result<T, RedisError> {
        let dialed = tokio::time::timeout(self.config.connect_timeout, dialing).await;
        dialed.unwrap_or_else(|_| Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()))
    }

    fn client(&self, protocol: ProtocolVersion) -> Result<Client, RedisError> {
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
        let address = match &config.address {
            Address::Tcp { host, port, tls: false } => ConnectionAddr::Tcp(host.clone(), *port),
            Address::Tcp { host, port, tls: true } => {
                ConnectionAddr::TcpTls { host: host.clone(), port: *port, insecure: false, tls_params: None }
            }
            Address::Unix(path) => ConnectionAddr::Unix(path.clone()),
        };
        let info = address.into_connection_info()?.set_redis_settings(settings);
        if config.scheme() != "rediss" {
            return Client::open(info);
        }
        // Where several crates bring one, rustls does not choose by itself. Whoever chose before us is right.
        drop(rustls::crypto::ring::default_provider().install_default());
        let root_cert = config.tls_ca.as_deref().map(std::fs::read).transpose()?;
        Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert })
    }
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
fn chance() -> f64 {
    let mut byte = [0];
    // Without randomness there is no spread, and nothing worse.
    match getrandom::fill(&mut byte) {
        Ok(()) => f64::from(byte[0]) / 255.0,
        Err(_) => 0.5,
    }
}
