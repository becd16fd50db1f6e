//! Where a Redis is and how to talk to it.
//!
//! A URL says it all: `redis://user:password@host:6379/0?command_timeout=2s`, or with several servers
//! `redis+sentinel://host:26379,host:26379/mymaster`. Passwords never show in `Debug`, in errors or in logs.

mod url;

use std::{fmt, path::PathBuf, time::Duration};

/// How to reach a Redis or Valkey.
#[derive(Clone)]
#[must_use = "a configuration does nothing until a store is opened with it"]
pub struct RedisConfig {
    pub(crate) servers: Servers,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) db: u32,
    pub(crate) sentinel_username: Option<String>,
    pub(crate) sentinel_password: Option<String>,
    pub(crate) tls_ca: Option<PathBuf>,
    pub(crate) command_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) layout: Layout,
    pub(crate) wait_replicas: u32,
    pub(crate) replica_timeout: Duration,
    pub(crate) publish: Publish,
}

/// Which servers there are, and how they belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Servers {
    One(Address),
    /// These know the primary of this name.
    Sentinels {
        sentinels: Vec<Address>,
        primary: String,
    },
    /// One of these is the primary; the others are its replicas.
    Replicas(Vec<Address>),
    /// Some of the servers of a cluster; they know the others.
    Cluster(Vec<Address>),
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp { host: String, port: u16, tls: bool },
    Unix(PathBuf),
}

/// How a lock that does not say otherwise looks in Redis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// Redisson's hash: Java and Rust contend for the same lock.
    #[default]
    Redisson,
    /// One value under the name, as `SET name value NX PX` makes it: the fastest, and what many other clients use.
    Plain,
}

/// How wake-ups are told in a cluster. They are always heard both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Publish {
    /// By slot where servers can (from Redis 7 on), as Redisson does from 3.22 on.
    #[default]
    Sharded,
    /// To the whole cluster, as older Redissons do.
    Plain,
    /// Both, for a fleet in which both are.
    Both,
}

impl RedisConfig {
    /// The words [`from_url`](Self::from_url) knows after the `?`, besides those of every store (`prefix`, `ttl`).
    pub const OPTIONS: [&'static str; 11] = [
        "command_timeout",
        "connect_timeout",
        "db",
        "layout",
        "publish",
        "replica_timeout",
        "sentinel_password",
        "sentinel_username",
        "tls_ca",
        "username",
        "wait_replicas",
    ];

    /// A server at this host and port, without TLS and password.
    pub fn new(host: &str, port: u16) -> Self {
        Self::at(Address::Tcp { host: host.to_owned(), port, tls: false })
    }

    /// A server on this machine, at a Unix socket.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self::at(Address::Unix(path.into()))
    }

    fn at(address: Address) -> Self {
        Self::of(Servers::One(address))
    }

    fn of(servers: Servers) -> Self {
        Self {
            servers,
            username: None,
            password: None,
            db: 0,
            sentinel_username: None,
            sentinel_password: None,
            tls_ca: None,
            command_timeout: Duration::from_secs(3),
            connect_timeout: Duration::from_secs(5),
            layout: Layout::Redisson,
            wait_replicas: 0,
            replica_timeout: Duration::from_secs(1),
            publish: Publish::Sharded,
        }
    }

    /// Talks TLS; a Unix socket has none.
    pub fn with_tls(mut self) -> Self {
        for address in self.servers.addresses_mut() {
            if let Address::Tcp { tls, .. } = address {
                *tls = true;
            }
        }
        self
    }

    /// Trusts the certificates in this PEM file instead of the usual authorities.
    pub fn with_tls_ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.tls_ca = Some(file.into());
        self
    }

    /// The ACL user.
    pub fn with_username(mut self, username: &str) -> Self {
        self.username = Some(username.to_owned());
        self
    }

    /// The password.
    pub fn with_password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// The number of the database.
    pub fn with_db(mut self, db: u32) -> Self {
        self.db = db;
        self
    }

    /// How long to wait for an answer before it counts as lost. 3 s unless said.
    pub fn with_command_timeout(mut self, timeout: Duration) -> Self {
        self.command_timeout = timeout;
        self
    }

    /// How long to wait for a connection. 5 s unless said.
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How locks that do not say otherwise look in Redis.
    pub fn with_layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// How many replicas must have confirmed a grant or a renewal before it counts. A grant that they do not confirm in
    /// time is taken back. A single server has none: it refuses to open with this.
    pub fn with_wait_replicas(mut self, replicas: u32) -> Self {
        self.wait_replicas = replicas;
        self
    }

    /// How wake-ups are told in a cluster.
    pub fn with_publish(mut self, publish: Publish) -> Self {
        self.publish = publish;
        self
    }

    /// How long replicas may take to confirm. 1 s unless said.
    pub fn with_replica_timeout(mut self, timeout: Duration) -> Self {
        self.replica_timeout = timeout;
        self
    }

    /// Where the servers are, without secrets.
    pub(crate) fn place(&self) -> String {
        let together =
            |addresses: &[Address]| addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        match &self.servers {
            Servers::One(Address::Unix(path)) => format!("{}?db={}", path.display(), self.db),
            Servers::One(address) => format!("{address}/{}", self.db),
            Servers::Sentinels { sentinels, primary } => {
                format!("{}/{primary}?db={}", together(sentinels), self.db)
            }
            Servers::Replicas(addresses) => format!("{}/{}", together(addresses), self.db),
            Servers::Cluster(addresses) => together(addresses),
        }
    }

    pub(crate) fn scheme(&self) -> &'static str {
        match (&self.servers, self.servers.talk_tls()) {
            (Servers::One(Address::Unix(_)), _) => "redis+unix",
            (Servers::One(_), false) => "redis",
            (Servers::One(_), true) => "rediss",
            (Servers::Sentinels { .. }, false) => "redis+sentinel",
            (Servers::Sentinels { .. }, true) => "rediss+sentinel",
            (Servers::Replicas(_), false) => "redis+replicas",
            (Servers::Replicas(_), true) => "rediss+replicas",
            (Servers::Cluster(_), false) => "redis+cluster",
            (Servers::Cluster(_), true) => "rediss+cluster",
        }
    }
}

impl Servers {
    fn addresses_mut(&mut self) -> &mut [Address] {
        match self {
            Self::One(address) => std::slice::from_mut(address),
            Self::Sentinels { sentinels: addresses, .. }
            | Self::Replicas(addresses)
            | Self::Cluster(addresses) => addresses,
        }
    }

    fn addresses(&self) -> &[Address] {
        match self {
            Self::One(address) => std::slice::from_ref(address),
            Self::Sentinels { sentinels: addresses, .. }
            | Self::Replicas(addresses)
            | Self::Cluster(addresses) => addresses,
        }
    }

    /// Whether servers that these tell of talk TLS too.
    pub(crate) fn talk_tls(&self) -> bool {
        self.addresses().iter().any(|address| matches!(address, Address::Tcp { tls: true, .. }))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port, .. } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port, .. } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let password = self.password.as_ref().map(|_| "…");
        f.debug_struct("RedisConfig")
            .field("scheme", &self.scheme())
            .field("place", &self.place())
            .field("username", &self.username)
            .field("password", &password)
            .field("tls_ca", &self.tls_ca)
            .field("command_timeout", &self.command_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("layout", &self.layout)
            .field("wait_replicas", &self.wait_replicas)
            .finish_non_exhaustive()
    }
}
