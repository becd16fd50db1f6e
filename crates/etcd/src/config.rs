//! Where an etcd is and how to talk to it.
//!
//! A URL says it all: `etcd://user:password@host:2379,host:2379?command_timeout=2s`, and `etcds://` for TLS. Passwords never
//! show in `Debug`, in errors or in logs.

use std::{borrow::Cow, fmt, path::PathBuf, time::Duration};

use leasehold_core::{Error, Operation, Result, Span};

/// The port of etcd.
const PORT: u16 = 2379;

/// How to reach an etcd.
#[derive(Clone)]
#[must_use = "a configuration does nothing until a store is opened with it"]
pub struct EtcdConfig {
    servers: Vec<(String, u16)>,
    pub(crate) tls: bool,
    pub(crate) tls_ca: Option<PathBuf>,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) command_timeout: Duration,
    pub(crate) connect_timeout: Duration,
}

impl EtcdConfig {
    /// The words [`from_url`](Self::from_url) knows after the `?`, besides those of every store (`prefix`, `ttl`).
    pub const OPTIONS: [&'static str; 4] = ["command_timeout", "connect_timeout", "tls_ca", "username"];

    /// A server at this host and port, without TLS and password.
    pub fn new(host: &str, port: u16) -> Self {
        Self {
            servers: vec![(host.to_owned(), port)],
            tls: false,
            tls_ca: None,
            username: None,
            password: None,
            command_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(5),
        }
    }

    /// Reads a URL: `etcd://user:password@host:2379,host:2379`, or `etcds://` to talk TLS. Name all members: one that is
    /// down is left for the next. The options of every store, `prefix` and `ttl`, are left to whoever makes the client.
    ///
    /// # Errors
    /// `Config` if it cannot be read. The message never repeats the URL: it may carry a password.
    pub fn from_url(url: &str) -> Result<Self> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| config(SHAPE))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let tls = match scheme {
            "etcd" => false,
            "etcds" => true,
            _ => return Err(config(SHAPE)),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if !path.is_empty() {
            return Err(config(if path.contains('@') { ENCODE } else { SHAPE }));
        }
        let (user, hosts) = authority.rsplit_once('@').map_or((None, authority), |(u, h)| (Some(u), h));
        if hosts.contains(',') && hosts.split(',').any(str::is_empty) {
            return Err(config("a server in the store URL has no name; is there a comma too many?"));
        }
        let mut parsed = Self::new("", PORT);
        parsed.servers = hosts.split(',').map(host_and_port).collect::<Result<_>>()?;
        parsed.tls = tls;
        if let Some(user) = user {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            parsed.username = Some(decoded(name)).filter(|name| !name.is_empty());
            parsed.password = Some(decoded(password)).filter(|password| !password.is_empty());
        }
        for (word, value) in form_urlencoded::parse(query.as_bytes()) {
            // A question mark in a password ends up here: what is refused may be the rest of it.
            let rest_of_password = |error| if query.contains('@') { config(ENCODE) } else { error };
            parsed = parsed.with_option(&word, &value).map_err(rest_of_password)?;
        }
        if parsed.tls_ca.is_some() && !tls {
            return Err(config("tls_ca in the store URL is for TLS; write it with etcds://"));
        }
        Ok(parsed)
    }

    /// One more member of the same etcd.
    pub fn with_server(mut self, host: &str, port: u16) -> Self {
        self.servers.push((host.to_owned(), port));
        self
    }

    /// Talks TLS.
    pub fn with_tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Talks TLS, and trusts the certificates in this PEM file instead of the usual authorities.
    pub fn with_tls_ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.tls = true;
        self.tls_ca = Some(file.into());
        self
    }

    /// The user.
    pub fn with_username(mut self, username: &str) -> Self {
        self.username = Some(username.to_owned());
        self
    }

    /// The password.
    pub fn with_password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// How long to wait for an answer before it counts as lost. 5 s unless said.
    pub fn with_command_timeout(mut self, timeout: Duration) -> Self {
        self.command_timeout = timeout;
        self
    }

    /// How long to wait for a connection. 5 s unless said.
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    fn with_option(mut self, word: &str, value: &str) -> Result<Self> {
        match word {
            "command_timeout" => self.command_timeout = duration(word, value)?,
            "connect_timeout" => self.connect_timeout = duration(word, value)?,
            "tls_ca" => self.tls_ca = Some(value.into()),
            "username" => self.username = Some(value.to_owned()),
            "prefix" | "ttl" => {}
            other => {
                let known = Self::OPTIONS.join(", ");
                // What is no word may be part of a password with a question mark in it.
                let is_word = other.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
                let shown = if is_word { format!(" {other:?}") } else { String::new() };
                return Err(config(format!(
                    "unknown option{shown} in the store URL; etcd knows {known}, prefix, ttl (write a ? in a \
                     password as %3F)"
                )));
            }
        }
        Ok(self)
    }

    /// Where the servers are, without secrets.
    pub(crate) fn place(&self) -> String {
        let shown = |(host, port): &(String, u16)| {
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
        };
        self.servers.iter().map(shown).collect::<Vec<_>>().join(",")
    }

    /// The names or addresses of the servers.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(|(host, _)| host.as_str())
    }

    /// Each server, as the client library wants it.
    pub(crate) fn uris(&self) -> impl Iterator<Item = String> {
        let scheme = if self.tls { "https" } else { "http" };
        self.place()
            .split(',')
            .map(move |place| format!("{scheme}://{place}"))
            .collect::<Vec<_>>()
            .into_iter()
    }

    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls { "etcds" } else { "etcd" }
    }
}

const SHAPE: &str =
    "this is not the URL of an etcd; write it like etcd://host:2379,host:2379 or etcds://host";

const ENCODE: &str =
    "this URL cannot be read; write /, ?, # and @ within a user name or a password as %2F, %3F, %23 and %40";

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

/// Undoes percent-encoding; unlike in a query, a plus is a plus and an ampersand separates nothing.
fn decoded(text: &str) -> String {
    let protected = text.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    form_urlencoded::parse(protected.as_bytes())
        .next()
        .map_or_else(String::new, |(name, _)| name.into_owned())
}

fn config(message: impl Into<Cow<'static, str>>) -> Error {
    Error::config(Operation::Connect, message)
}

impl fmt::Debug for EtcdConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let password = self.password.as_ref().map(|_| "…");
        f.debug_struct("EtcdConfig")
            .field("scheme", &self.scheme())
            .field("place", &self.place())
            .field("username", &self.username)
            .field("password", &password)
            .field("tls_ca", &self.tls_ca)
            .field("command_timeout", &self.command_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::{proptest, test_runner::Config};

    use super::*;

    #[test]
    fn a_url_says_it_all() {
        let parsed = EtcdConfig::from_url("etcds://u%40x:p%2Fw@a,b:7,[::1]:9?command_timeout=2s").unwrap();
        assert_eq!(parsed.place(), "a:2379,b:7,[::1]:9");
        assert_eq!((parsed.username.as_deref(), parsed.password.as_deref()), (Some("u@x"), Some("p/w")));
        assert_eq!((parsed.tls, parsed.command_timeout), (true, Duration::from_secs(2)));
        assert_eq!(EtcdConfig::from_url("etcd://").unwrap().place(), "127.0.0.1:2379");
        for bad in ["etcd:", "etcd://a/b", "http://a", "etcd://a,,b", "etcd://a:x", "etcd://a?what=1"] {
            assert!(EtcdConfig::from_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let parsed = EtcdConfig::from_url("etcd://u:secret@host").unwrap();
        assert!(!format!("{parsed:?}").contains("secret"));
        for bad in ["etcd://u:1?secret@host", "etcd://u:1/secret@host", "etcd://u:secret@host:port"] {
            let error = EtcdConfig::from_url(bad).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
        }
    }

    proptest! {
        #![proptest_config(Config { cases: 1000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_text_makes_it_panic(text in "(etcds?://)?[a-z0-9%@:,/?&=#.+锁\\[\\]]{0,40}") {
            drop(EtcdConfig::from_url(&text));
        }
    }
}
