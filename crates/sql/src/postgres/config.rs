//! Where a PostgreSQL is and how to talk to it.

use std::{fmt, path::PathBuf, time::Duration};

use leasehold_core::Result;

use crate::server::url::{Common, ENCODE, Tls, config, session, unknown};

/// How to reach a PostgreSQL. Nothing is touched until [`Postgres::open`](super::Postgres::open).
#[derive(Clone)]
#[must_use = "a configuration does nothing until a store is opened with it"]
pub struct PostgresConfig {
    pub(super) client: tokio_postgres::Config,
    pub(super) common: Common,
    pub(super) listens: bool,
}

/// What of the client's own words a URL may say.
const THEIRS: [&str; 8] = [
    "application_name",
    "channel_binding",
    "dbname",
    "host",
    "options",
    "port",
    "target_session_attrs",
    "user",
];

impl PostgresConfig {
    /// Reads a URL such as `postgres://user:password@host:5432/database?connections=8`, with several hosts if need be:
    /// `postgres://one,two/database?target_session_attrs=read-write`. The options of every store, `prefix` and `ttl`, are
    /// left to whoever makes the client.
    ///
    /// | option | |
    /// |---|---|
    /// | `command_timeout`, `connect_timeout` | 5 s each unless said |
    /// | `connections` | how many to use at most; 4 unless said, and one more while somebody waits |
    /// | `session` | off unless said; how long the server keeps a session of ours that it does not hear of, such as `10s`. What we hold ends with it, so who dies is noticed at once |
    /// | `sslmode` | `disable` (unless said) or `verify-full`: nothing in between protects from anybody |
    /// | `tls_ca` | the PEM file of the authorities to trust; who names it wants `verify-full` |
    /// | `listen` | `off` to look for oneself rather than be woken, without a connection of its own |
    /// | `application_name`, `channel_binding`, `dbname`, `host`, `options`, `port`, `target_session_attrs`, `user` | as in libpq |
    ///
    /// # Errors
    /// `Config` if it cannot be read. The message never repeats the URL: it may carry a password.
    pub fn from_url(url: &str) -> Result<Self> {
        let (common, others) = Common::read(url)?;
        let (base, _) = url.split_once('?').unwrap_or((url, ""));
        let mut theirs = form_urlencoded::Serializer::new(String::new());
        let mut listens = true;
        for (word, value) in others {
            match (&*word, &*value) {
                ("listen", "on") => listens = true,
                ("listen", "off") => listens = false,
                ("listen", _) => return Err(config("listen in the store URL is on or off")),
                (word, value) if THEIRS.contains(&word) => {
                    theirs.append_pair(word, value);
                }
                (word, _) => {
                    return Err(unknown("PostgreSQL", word, &format!("listen, {}", THEIRS.join(", "))));
                }
            }
        }
        // A plus is a plus to them, not a space.
        let client: tokio_postgres::Config =
            format!("{base}?{}", theirs.finish().replace('+', "%20")).parse().map_err(|_| config(ENCODE))?;
        if client.get_hosts().is_empty() {
            return Err(config("a PostgreSQL store needs a host; write it like postgres://host/database"));
        }
        Ok(Self { client, common, listens }.finished())
    }

    /// A server at this host and port, with this user and database.
    pub fn new(host: &str, port: u16, user: &str, database: &str) -> Self {
        let mut client = tokio_postgres::Config::new();
        client.host(host).port(port).user(user).dbname(database);
        Self { client, common: Common::default(), listens: true }.finished()
    }

    fn finished(mut self) -> Self {
        // Half-open connections are found out, by us and by what waits for us.
        self.client.keepalives_idle(Duration::from_secs(5)).keepalives_interval(Duration::from_secs(2));
        self.client.keepalives_retries(3).tcp_user_timeout(Duration::from_secs(10));
        if self.client.get_application_name().is_none() {
            self.client.application_name("leasehold");
        }
        let tls = self.common.tls;
        self.with_tls(tls)
    }

    /// The password.
    pub fn with_password(mut self, password: &str) -> Self {
        self.client.password(password);
        self
    }

    /// Whether the connection is encrypted.
    pub fn with_tls(mut self, tls: Tls) -> Self {
        self.common.tls = tls;
        self.client.ssl_mode(match tls {
            Tls::Off => tokio_postgres::config::SslMode::Disable,
            Tls::Verified => tokio_postgres::config::SslMode::Require,
        });
        self
    }

    /// Encrypts, and trusts the certificates in this PEM file instead of the usual authorities.
    pub fn with_tls_ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.common.tls_ca = Some(file.into());
        self.with_tls(Tls::Verified)
    }

    /// How long to wait for an answer before it counts as lost. 5 s unless said.
    pub fn with_command_timeout(mut self, timeout: Duration) -> Self {
        self.common.command_timeout = timeout;
        self
    }

    /// How long to wait for a connection. 5 s unless said.
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.common.connect_timeout = timeout;
        self
    }

    /// How many connections to use at most, at least one; one more while somebody waits. 4 unless said.
    pub fn with_connections(mut self, connections: usize) -> Self {
        self.common.connections = connections.max(1);
        self
    }

    /// Looks for oneself rather than be woken, without a connection of its own for that.
    pub fn without_listening(mut self) -> Self {
        self.listens = false;
        self
    }

    /// Holds and waits for as long as a session of our own lasts, besides the lease: who dies is noticed at once. The server
    /// keeps the session for this long without a sign of life, from 2 s to an hour; no grant is longer. See
    /// [the module](super) for what it costs.
    ///
    /// # Errors
    /// `Config` for a time that is shorter or longer.
    pub fn with_session(mut self, patience: Duration) -> Result<Self> {
        self.common.session = Some(session(patience)?);
        Ok(self)
    }

    /// Where it is, without secrets.
    pub(super) fn place(&self) -> String {
        use tokio_postgres::config::Host;
        let ports = self.client.get_ports();
        let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        let hosts: Vec<_> = self
            .client
            .get_hosts()
            .iter()
            .enumerate()
            .map(|(at, host)| match host {
                Host::Tcp(name) => format!("{name}:{}", port(at)),
                #[cfg(unix)]
                Host::Unix(path) => format!("{}:{}", path.display(), port(at)),
            })
            .collect();
        let database = self.client.get_dbname().or(self.client.get_user()).unwrap_or_default();
        format!("{}/{database}", hosts.join(","))
    }

    /// Names or addresses of the hosts, or paths of their sockets.
    pub(super) fn hosts(&self) -> Vec<String> {
        use tokio_postgres::config::Host;
        let shown = |host: &Host| match host {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        };
        self.client.get_hosts().iter().map(shown).collect()
    }
}

impl fmt::Debug for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresConfig")
            .field("place", &self.place())
            .field("user", &self.client.get_user())
            .field("password", &self.client.get_password().map(|_| "…"))
            .field("common", &self.common)
            .field("listens", &self.listens)
            .finish()
    }
}
