//! Where a Redis is and how to talk to it.
//!
//! A URL says it all: `redis://user:password@host:6379/0?command_timeout=2s`. Passwords never show in `Debug`, in
//! errors or in logs.

use std::{borrow::Cow, fmt, path::PathBuf, time::Duration};

use leasehold_core::{Error, Operation, Result, Span};

/// The port of Redis.
const PORT: u16 = 6379;

/// How to reach a Redis or Valkey.
#[derive(Clone)]
#[must_use = "a configuration does nothing until a store is opened with it"]
pub struct RedisConfig {
    pub(crate) address: Address,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) db: u32,
    pub(crate) tls_ca: Option<PathBuf>,
    pub(crate) command_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) layout: Layout,
    pub(crate) wait_replicas: Option<u32>,
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

impl RedisConfig {
    /// The words [`from_url`](Self::from_url) knows after the `?`, besides those of every store (`prefix`, `ttl`).
    pub const OPTIONS: [&'static str; 7] =
        ["command_timeout", "connect_timeout", "db", "layout", "tls_ca", "username", "wait_replicas"];

    /// A server at this host and port, without TLS and password.
    pub fn new(host: &str, port: u16) -> Self {
        Self::at(Address::Tcp { host: host.to_owned(), port, tls: false })
    }

    /// A server on this machine, at a Unix socket.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self::at(Address::Unix(path.into()))
    }

    fn at(address: Address) -> Self {
        Self {
            address,
            username: None,
            password: None,
            db: 0,
            tls_ca: None,
            command_timeout: Duration::from_secs(3),
            connect_timeout: Duration::from_secs(5),
            layout: Layout::Redisson,
            wait_replicas: None,
        }
    }

    /// Reads `redis://`, `rediss://` (TLS) and `redis+unix://` URLs: `redis://user:password@host:port/db?options`.
    /// The options of every store, `prefix` and `ttl`, are left to whoever makes the client.
    ///
    /// # Errors
    /// `Config` if it cannot be read. The message never repeats the URL: it may carry a password.
    pub fn from_url(url: &str) -> Result<Self> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| config(SHAPE))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut parsed = match scheme {
            "redis" => Self::from_authority(rest, false)?,
            "rediss" => Self::from_authority(rest, true)?,
            "redis+unix" if rest.starts_with('/') => Self::unix(decoded(rest)),
            _ => return Err(config(SHAPE)),
        };
        for (word, value) in form_urlencoded::parse(query.as_bytes()) {
            parsed = parsed.with_option(&word, &value)?;
        }
        Ok(parsed)
    }

    /// `user:password@host:port/db`
    fn from_authority(rest: &str, tls: bool) -> Result<Self> {
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let (host, port) = host_and_port(host)?;
        let mut parsed = Self::at(Address::Tcp { host, port, tls });
        if let Some(user) = user {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            parsed.username = Some(decoded(name)).filter(|name| !name.is_empty());
            parsed.password = Some(decoded(password)).filter(|password| !password.is_empty());
        }
        if path.is_empty() { Ok(parsed) } else { parsed.with_option("db", path) }
    }

    fn with_option(mut self, word: &str, value: &str) -> Result<Self> {
        let number = || {
            value
                .parse()
                .map_err(|_| config(format!("{word} in the store URL is a number, such as {word}=1")))
        };
        match word {
            "command_timeout" => self.command_timeout = duration(word, value)?,
            "connect_timeout" => self.connect_timeout = duration(word, value)?,
            "db" => self.db = number()?,
            "wait_replicas" => self.wait_replicas = Some(number()?),
            "username" => self.username = Some(value.to_owned()),
            "tls_ca" => self.tls_ca = Some(value.into()),
            "layout" if value == "plain" => self.layout = Layout::Plain,
            "layout" if value == "redisson" => self.layout = Layout::Redisson,
            "layout" => return Err(config("layout in the store URL is redisson or plain")),
            "prefix" | "ttl" => {}
            other => {
                let known = Self::OPTIONS.join(", ");
                return Err(config(format!(
                    "unknown option {other:?} in the store URL; Redis knows {known}, prefix, ttl"
                )));
            }
        }
        Ok(self)
    }

    /// Talks TLS; a Unix socket has none.
    pub fn with_tls(mut self) -> Self {
        if let Address::Tcp { tls, .. } = &mut self.address {
            *tls = true;
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

    /// How many replicas must have acknowledged a grant. A single server has none: it refuses to open with this.
    pub fn with_wait_replicas(mut self, replicas: u32) -> Self {
        self.wait_replicas = Some(replicas);
        self
    }

    /// Where the server is, without secrets.
    pub(crate) fn place(&self) -> String {
        match &self.address {
            Address::Tcp { host, port, .. } if host.contains(':') => format!("[{host}]:{port}/{}", self.db),
            Address::Tcp { host, port, .. } => format!("{host}:{port}/{}", self.db),
            Address::Unix(path) => format!("{}?db={}", path.display(), self.db),
        }
    }

    pub(crate) fn scheme(&self) -> &'static str {
        match self.address {
            Address::Tcp { tls: false, .. } => "redis",
            Address::Tcp { tls: true, .. } => "rediss",
            Address::Unix(_) => "redis+unix",
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

const SHAPE: &str =
    "this is not the URL of a Redis; write it like redis://host:6379, rediss://host or redis+unix:///path";

/// `host`, `host:port`, `[::1]:port`, and nothing for this machine.
fn host_and_port(text: &str) -> Result<(String, u16)> {
    let bad_port = |_| config("the port in the store URL is a number from 1 to 65535");
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':').ok_or_else(|| config(SHAPE))?)),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Ok(PORT), |port| port.parse().map_err(bad_port))?;
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    Ok((decoded(host), port))
}

fn duration(word: &str, value: &str) -> Result<Duration> {
    let duration = Span::from(value).get().map_err(|message| config(format!("{word}: {message}")))?;
    if duration.is_zero() { Err(config(format!("{word} cannot be zero"))) } else { Ok(duration) }
}

/// Undoes percent-encoding; unlike in a query, a plus is a plus.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = match (first, tail) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)).map(|(high, low)| high * 16 + low),
            _ => None,
        };
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|digit| digit as u8)
}

fn config(message: impl Into<Cow<'static, str>>) -> Error {
    Error::config(Operation::Connect, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_it_all() {
        let url = "rediss://dep%40loy:s%2Fe+c@[::1]:7000/2?command_timeout=250ms&layout=plain&prefix=x&wait_replicas=2&tls_ca=/ca.pem";
        let parsed = RedisConfig::from_url(url).unwrap();
        assert_eq!(parsed.address, Address::Tcp { host: "::1".to_owned(), port: 7000, tls: true });
        assert_eq!(
            (parsed.username.as_deref(), parsed.password.as_deref()),
            (Some("dep@loy"), Some("s/e+c"))
        );
        assert_eq!((parsed.db, parsed.layout, parsed.wait_replicas), (2, Layout::Plain, Some(2)));
        assert_eq!(parsed.command_timeout, Duration::from_millis(250));
        assert_eq!(parsed.place(), "[::1]:7000/2");
    }

    #[test]
    fn what_is_left_out_is_usual() {
        let parsed = RedisConfig::from_url("redis://").unwrap();
        assert_eq!(parsed.address, Address::Tcp { host: "127.0.0.1".to_owned(), port: PORT, tls: false });
        let parsed = RedisConfig::from_url("redis+unix:///run/redis.sock?db=3&username=u").unwrap();
        assert_eq!((parsed.address, parsed.db), (Address::Unix("/run/redis.sock".into()), 3));
        let parsed = RedisConfig::from_url("redis://:secret@cache").unwrap();
        assert_eq!((parsed.username, parsed.password.as_deref()), (None, Some("secret")));
    }

    #[test]
    fn secrets_are_not_shown() {
        let url = "redis://u:hunter2@h:99999/";
        assert!(!RedisConfig::from_url(url).unwrap_err().to_string().contains("hunter2"));
        let shown = format!("{:?}", RedisConfig::from_url("redis://u:hunter2@h").unwrap());
        assert!(!shown.contains("hunter2"), "{shown}");
        for bad in
            ["redis:x", "http://x", "redis+unix://x", "redis://h/x", "redis://h?layout=x", "redis://h?x=1"]
        {
            assert!(RedisConfig::from_url(bad).is_err(), "{bad}");
        }
    }
}
