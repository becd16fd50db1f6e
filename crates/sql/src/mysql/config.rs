//! Where a MySQL or MariaDB is and how to talk to it.

use std::{fmt, path::PathBuf, time::Duration};

use leasehold_core::Result;
use mysql_async::{Opts, OptsBuilder, SslOpts};

use crate::server::url::{Common, ENCODE, Tls, config, session, unknown};

/// How to reach a MySQL or MariaDB. Nothing is touched until [`MySql::open`](super::MySql::open).
#[derive(Clone)]
#[must_use = "a configuration does nothing until a store is opened with it"]
pub struct MySqlConfig {
    client: OptsBuilder,
    place: String,
    host: String,
    pub(super) common: Common,
}

impl MySqlConfig {
    /// Reads a URL such as `mysql://user:password@host:3306/database?connections=8`; `mariadb://` is the same. The options of
    /// every store, `prefix` and `ttl`, are left to whoever makes the client.
    ///
    /// | option | |
    /// |---|---|
    /// | `command_timeout`, `connect_timeout` | 5 s each unless said |
    /// | `connections` | how many to use at most; 4 unless said |
    /// | `session` | off unless said; how long the server keeps a session of ours that it does not hear of, such as `10s`. What we hold ends with it, so who dies is noticed at once |
    /// | `sslmode` | `disable` (unless said) or `verify-full`: nothing in between protects from anybody |
    /// | `tls_ca` | the PEM file of the authorities to trust; who names it wants `verify-full` |
    ///
    /// # Errors
    /// `Config` if it cannot be read. The message never repeats the URL: it may carry a password.
    pub fn from_url(url: &str) -> Result<Self> {
        let (common, others) = Common::read(url)?;
        if let Some((word, _)) = others.first() {
            return Err(unknown("MySQL", word, "no more than"));
        }
        let (base, _) = url.split_once('?').unwrap_or((url, ""));
        let rest = base.strip_prefix("mysql://").or_else(|| base.strip_prefix("mariadb://"));
        let rest = rest.ok_or_else(|| config("write it like mysql://host/database"))?;
        let opts = Opts::from_url(&format!("mysql://{rest}")).map_err(|_| config(ENCODE))?;
        let Some(database) = opts.db_name().filter(|name| !name.is_empty()).map(str::to_owned) else {
            return Err(config("a MySQL store needs a database; write it like mysql://host/database"));
        };
        let host = opts.ip_or_hostname().to_owned();
        let place = format!("{host}:{}/{database}", opts.tcp_port());
        let client = OptsBuilder::from_opts(opts).prefer_socket(false).tcp_nodelay(true);
        Ok(Self { client, place, host, common })
    }

    /// Whether the connection is encrypted.
    pub fn with_tls(mut self, tls: Tls) -> Self {
        self.common.tls = tls;
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

    /// How many connections to use at most, at least one. 4 unless said.
    pub fn with_connections(mut self, connections: usize) -> Self {
        self.common.connections = connections.max(1);
        self
    }

    /// Holds and waits for as long as a session of our own lasts, besides the lease: who dies is noticed at once. The server
    /// keeps the session for this long without a sign of life, from 2 s to an hour, of which ten minutes count; no grant is
    /// longer. See
    /// [the module](super) for what it costs.
    ///
    /// # Errors
    /// `Config` for a time that is shorter or longer.
    pub fn with_session(mut self, patience: Duration) -> Result<Self> {
        self.common.session = Some(session(patience)?);
        Ok(self)
    }

    /// Where it is, without secrets.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// For a connection that we do not give up by ourselves though nobody answers.
    pub(super) fn outlasting_options(&self) -> Opts {
        OptsBuilder::from_opts(self.options()).tcp_keepalive(None::<Duration>).into()
    }

    /// What the client wants to know. A statement waits for others no longer than we wait for it.
    pub(super) fn options(&self) -> Opts {
        let wait = self.common.command_timeout.as_secs().max(1);
        let init = format!("SET autocommit = 1, innodb_lock_wait_timeout = {wait}");
        let tls = (self.common.tls == Tls::Verified).then(|| {
            let roots = self.common.tls_ca.iter().map(|file| file.clone().into());
            SslOpts::default()
                .with_disable_built_in_roots(self.common.tls_ca.is_some())
                .with_root_certs(roots.collect())
        });
        let client = self.client.clone().init(vec![init]).ssl_opts(tls);
        client.tcp_keepalive(Some(Duration::from_secs(5))).client_found_rows(false).into()
    }
}

impl fmt::Debug for MySqlConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySqlConfig")
            .field("place", &self.place)
            .field("common", &self.common)
            .finish_non_exhaustive()
    }
}
