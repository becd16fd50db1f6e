//! Where a ZooKeeper is and how to talk to it.

use std::{borrow::Cow, fmt, time::Duration};

use leasehold_core::{Error, Operation, Result, Span};

/// The port of ZooKeeper.
const PORT: u16 = 2181;

/// Where names live unless the URL says: the root itself belongs to all programs of an ensemble.
const ROOT: &str = "/leasehold";

/// Where a ZooKeeper is and how to talk to it.
#[derive(Clone)]
#[must_use = "a configuration does nothing until it is opened"]
pub struct ZooKeeperConfig {
    pub(crate) servers: Vec<String>,
    pub(crate) root: String,
    pub(crate) credentials: Option<(String, String)>,
    pub(crate) session_timeout: Duration,
    pub(crate) command_timeout: Duration,
    pub(crate) connect_timeout: Duration,
}

impl ZooKeeperConfig {
    /// These servers of one ensemble, each `host:port`.
    pub fn new<S: Into<String>>(servers: impl IntoIterator<Item = S>) -> Self {
        Self {
            servers: servers.into_iter().map(Into::into).collect(),
            root: ROOT.to_owned(),
            credentials: None,
            // The most that a server gives by its default settings: 20 ticks of 2 seconds.
            session_timeout: Duration::from_secs(40),
            command_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(10),
        }
    }

    /// Names live below this path; `/leasehold` unless said.
    pub fn with_chroot(mut self, chroot: &str) -> Self {
        let path = chroot.trim_matches('/');
        self.root = if path.is_empty() { ROOT.to_owned() } else { format!("/{path}") };
        self
    }

    /// Digest authentication. Nodes are then made for this user alone.
    pub fn with_credentials(mut self, user: &str, password: &str) -> Self {
        self.credentials = Some((user.to_owned(), password.to_owned()));
        self
    }

    /// The session to ask for; the server may give less. No lease is longer than half of what it gives, and a crashed
    /// holder's lock is free again when its session ends.
    pub fn with_session_timeout(mut self, timeout: Duration) -> Self {
        self.session_timeout = timeout;
        self
    }

    /// How long to wait for an answer.
    pub fn with_command_timeout(mut self, timeout: Duration) -> Self {
        self.command_timeout = timeout;
        self
    }

    /// How long to try to connect.
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Reads `zookeeper://user:password@host:2181,host:2181/chroot`, with the options `session_timeout`,
    /// `command_timeout` and `connect_timeout`. The options of every store, `prefix` and `ttl`, are left to whoever
    /// makes the client.
    ///
    /// # Errors
    /// `Config` if it cannot be read. The message never repeats the URL: it may carry a password.
    pub fn from_url(url: &str) -> Result<Self> {
        let rest = url.strip_prefix("zookeeper://").ok_or_else(|| config(SHAPE))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if path.contains('@') || query.contains('@') {
            return Err(config(ENCODE));
        }
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, authority),
        };
        let servers = hosts.split(',').map(server).collect::<Result<Vec<_>>>()?;
        let mut parsed = Self::new(servers).with_chroot(&checked(path)?);
        if let Some(user) = user {
            let (name, password) = user.split_once(':').ok_or_else(|| config(PASSWORD))?;
            parsed = parsed.with_credentials(&decoded(name), &decoded(password));
        }
        for (word, value) in form_urlencoded::parse(query.as_bytes()) {
            parsed = parsed.with_option(&word, &value)?;
        }
        Ok(parsed)
    }

    fn with_option(mut self, word: &str, value: &str) -> Result<Self> {
        match word {
            "session_timeout" => self.session_timeout = duration(word, value)?,
            "command_timeout" => self.command_timeout = duration(word, value)?,
            "connect_timeout" => self.connect_timeout = duration(word, value)?,
            "prefix" | "ttl" => {}
            _ => {
                let message = "unknown option in the store URL; ZooKeeper knows session_timeout, command_timeout, \
                               connect_timeout, prefix, ttl (write a ? in a password as %3F)";
                return Err(config(message));
            }
        }
        Ok(self)
    }

    /// Where it is, without secrets.
    pub(crate) fn place(&self) -> String {
        format!("zookeeper://{}{}", self.servers.join(","), self.root)
    }
}

const SHAPE: &str =
    "this is not the URL of a ZooKeeper; write it like zookeeper://host:2181,host:2181/chroot";

const ENCODE: &str =
    "this URL cannot be read; write /, ?, # and @ within a user name or a password as %2F, %3F, %23 and %40";

const PASSWORD: &str =
    "digest authentication needs a user and a password, as in zookeeper://user:password@host";

/// `host`, `host:port` or `[::1]:port`.
fn server(text: &str) -> Result<String> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (format!("[{host}]"), port.strip_prefix(':')),
        None => {
            text.split_once(':').map_or((text.to_owned(), None), |(host, port)| (host.to_owned(), Some(port)))
        }
    };
    if host.is_empty() {
        return Err(config("a server in the store URL has no name; is there a comma too many?"));
    }
    let bad_port = |_| config("the port in the store URL is a number from 1 to 65535");
    let port = port.map_or(Ok(PORT), |port| port.parse::<u16>().map_err(bad_port))?;
    Ok(format!("{host}:{port}"))
}

/// A path that ZooKeeper takes.
fn checked(path: &str) -> Result<String> {
    let path = decoded(path);
    let path = path.trim_matches('/');
    let is_good = |part: &str| !matches!(part, "" | "." | "..") && !part.chars().any(char::is_control);
    if path.is_empty() || path.split('/').all(is_good) {
        return Ok(path.to_owned());
    }
    Err(config("the path in the store URL is no path of ZooKeeper; write it like /locks/shop"))
}

fn duration(word: &str, value: &str) -> Result<Duration> {
    let duration = Span::from(value).get().map_err(|message| config(format!("{word}: {message}")))?;
    if duration.is_zero() { Err(config(format!("{word} cannot be zero"))) } else { Ok(duration) }
}

/// Undoes percent-encoding; unlike in a query, a plus is a plus.
fn decoded(text: &str) -> String {
    let plain = text.replace('+', "%2B");
    form_urlencoded::parse(format!("x={}", plain.replace('&', "%26")).as_bytes())
        .next()
        .map_or_else(String::new, |(_, value)| value.into_owned())
}

fn config(message: impl Into<Cow<'static, str>>) -> Error {
    Error::config(Operation::Connect, message)
}

/// Without the password.
impl fmt::Debug for ZooKeeperConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.credentials.as_ref().map(|(user, _)| user);
        f.debug_struct("ZooKeeperConfig")
            .field("servers", &self.servers)
            .field("root", &self.root)
            .field("user", &user)
            .field("session_timeout", &self.session_timeout)
            .field("command_timeout", &self.command_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::{proptest, test_runner::Config};

    use super::*;

    #[test]
    fn a_url_says_it_all() {
        let url = "zookeeper://shop:a%2Fb+c@one,two:2182,[::1]:2183/locks/shop?session_timeout=20s&ttl=5s";
        let read = ZooKeeperConfig::from_url(url).unwrap();
        assert_eq!(read.servers, ["one:2181", "two:2182", "[::1]:2183"]);
        assert_eq!((read.root.as_str(), read.session_timeout), ("/locks/shop", Duration::from_secs(20)));
        assert_eq!(read.credentials, Some(("shop".to_owned(), "a/b+c".to_owned())));
        assert_eq!(ZooKeeperConfig::from_url("zookeeper://one").unwrap().root, "/leasehold");
    }

    #[test]
    fn no_message_repeats_a_password() {
        for url in [
            "zookeeper://u:secret@",
            "zookeeper://u:secret@host:port",
            "zookeeper://u:sec/ret@host",
            "zookeeper://u:sec?secret@host",
            "zookeeper://secret@host",
            "zookeeper://u:secret@host/../x",
            "zookeeper://u:secret@host?secret=1",
        ] {
            let error = ZooKeeperConfig::from_url(url).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        let read = ZooKeeperConfig::from_url("zookeeper://u:secret@host").unwrap();
        assert!(!format!("{read:?} {}", read.place()).contains("secret"));
    }

    proptest! {
        #![proptest_config(Config { cases: 1000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_text_makes_reading_a_url_panic(text in "(zookeeper://)?[a-z0-9%@:,/?&=#.+\\[\\]锁]{0,40}") {
            drop(ZooKeeperConfig::from_url(&text));
        }
    }
}
