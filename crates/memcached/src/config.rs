//! Where a memcached is and how to talk to it: `memcached://user:password@host:11211?command_timeout=2s`.
//!
//! No error repeats the URL, and `Debug` shows no password.

use std::{borrow::Cow, fmt, time::Duration};

use leasehold_core::{Error, Operation, Result, Span};

/// The port of memcached.
const PORT: u16 = 11211;

/// How to reach a memcached.
#[derive(Clone)]
#[must_use = "a configuration does nothing until a store is opened with it"]
pub struct MemcachedConfig {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) login: Option<(String, String)>,
    pub(crate) connect_timeout: Duration,
    pub(crate) command_timeout: Duration,
}

impl MemcachedConfig {
    /// The words [`from_url`](Self::from_url) knows after the `?`, besides those of every store (`prefix`, `ttl`).
    pub const OPTIONS: [&'static str; 2] = ["command_timeout", "connect_timeout"];

    /// A server at this host and port.
    pub fn new(host: &str, port: u16) -> Self {
        Self {
            host: host.to_owned(),
            port,
            login: None,
            connect_timeout: Duration::from_secs(5),
            command_timeout: Duration::from_secs(3),
        }
    }

    /// The user and the password, for a server that was started with a file of them (`-Y`).
    pub fn with_login(mut self, user: &str, password: &str) -> Self {
        self.login = Some((user.to_owned(), password.to_owned()));
        self
    }

    /// How long a connection may take to be made; 5 s unless told otherwise.
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long the server may take to answer; 3 s unless told otherwise.
    pub fn with_command_timeout(mut self, timeout: Duration) -> Self {
        self.command_timeout = timeout;
        self
    }

    /// Reads a URL. The options of every store, `prefix` and `ttl`, are left to whoever makes the client.
    ///
    /// # Errors
    /// `Config` if it cannot be read, or if it names several servers. The message never repeats it.
    pub fn from_url(url: &str) -> Result<Self> {
        let rest = url.strip_prefix("memcached://").ok_or_else(|| config(SHAPE))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if path.contains('@') {
            return Err(config(ENCODE));
        }
        if !path.is_empty() {
            return Err(config(SHAPE));
        }
        let (login, host) =
            authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        if host.contains(',') {
            return Err(config(ONE));
        }
        let (host, port) = host_and_port(host)?;
        let mut parsed = Self::new(&host, port);
        if let Some(login) = login {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            parsed = parsed.with_login(&decoded(user), &decoded(password));
        }
        for (word, value) in form_urlencoded::parse(query.as_bytes()) {
            // A question mark in a password ends up here: what is refused may be the rest of it.
            let rest_of_password = |error| if query.contains('@') { config(ENCODE) } else { error };
            parsed = parsed.with_option(&word, &value).map_err(rest_of_password)?;
        }
        Ok(parsed)
    }

    fn with_option(self, word: &str, value: &str) -> Result<Self> {
        let duration = || {
            let length = Span::from(value).get();
            length.map_err(|message| config(format!("{word} in the store URL: {message}")))
        };
        match word {
            "prefix" | "ttl" => Ok(self),
            "command_timeout" => Ok(self.with_command_timeout(duration()?)),
            "connect_timeout" => Ok(self.with_connect_timeout(duration()?)),
            _ => Err(config(format!(
                "unknown option {word:?} in the store URL; memcached knows prefix, ttl, {}",
                Self::OPTIONS.join(", ")
            ))),
        }
    }

    /// Where it is, without secrets.
    pub(crate) fn place(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        format!("memcached://{host}:{}", self.port)
    }
}

impl fmt::Debug for MemcachedConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemcachedConfig")
            .field("place", &self.place())
            .field("user", &self.login.as_ref().map(|(user, _)| user))
            .field("connect_timeout", &self.connect_timeout)
            .field("command_timeout", &self.command_timeout)
            .finish_non_exhaustive()
    }
}

const SHAPE: &str = "write it like memcached://host:11211 or memcached://user:password@host:11211";
const ENCODE: &str =
    "this URL cannot be read; write /, ?, # and @ within a user name or a password as %2F, %3F, %23 and %40";
const ONE: &str = "a lock lives on one memcached; name a single server, for names would move between several";

fn host_and_port(text: &str) -> Result<(String, u16)> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':').unwrap_or(port)),
        None => text.split_once(':').unwrap_or((text, "")),
    };
    let port = if port.is_empty() { Some(PORT) } else { port.parse().ok().filter(|port| *port > 0) };
    match port {
        Some(port) if !host.is_empty() => Ok((host.to_owned(), port)),
        _ => Err(config(SHAPE)),
    }
}

/// What a part of the URL stands for. A plus sign is itself there.
fn decoded(text: &str) -> String {
    let text = text.replace('+', "%2B");
    let mut pairs = form_urlencoded::parse(text.as_bytes());
    pairs.next().map_or_else(String::new, |(word, _): (Cow<'_, str>, _)| word.into_owned())
}

fn config(message: impl Into<Cow<'static, str>>) -> Error {
    Error::config(Operation::Connect, message)
}

#[cfg(test)]
mod tests {
    use proptest::{proptest, test_runner::Config};

    use super::*;

    proptest! {
        #![proptest_config(Config { cases: 1000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_text_makes_it_panic(text in "(memcached://)?[a-z0-9%@:,/?&=#.+锁\\[\\]]{0,40}") {
            drop(MemcachedConfig::from_url(&text));
        }
    }

    #[test]
    fn a_url_says_it_all() {
        let config =
            MemcachedConfig::from_url("memcached://u:p%40+x@host:1234?command_timeout=250ms&ttl=9s").unwrap();
        assert_eq!((config.host.as_str(), config.port), ("host", 1234));
        assert_eq!(config.login, Some(("u".to_owned(), "p@+x".to_owned())));
        assert_eq!(config.command_timeout, Duration::from_millis(250));
        assert!(!format!("{config:?}").contains("p@"), "{config:?}");
        let config = MemcachedConfig::from_url("memcached://[::1]").unwrap();
        assert_eq!((config.place().as_str(), config.login), ("memcached://[::1]:11211", None));
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_not_repeated() {
        for url in [
            "memcached:secret",
            "memcached://",
            "memcached://a,secret",
            "memcached://h:secret",
            "memcached://h:0",
            "memcached://h/secret",
            "memcached://u:1/secret@h",
            "memcached://u:1?secret@h",
            "memcached://h?command_timeout=secretly",
        ] {
            let error = MemcachedConfig::from_url(url).unwrap_err();
            let repeats = error.to_string().contains("secret") && !url.contains("secretly");
            assert!(!repeats, "{error}");
        }
    }
}
