//! What the URLs of database servers have in common: `scheme://user:password@host:port/database?option=value`.
//!
//! No error repeats the URL: it may carry a password.

use std::{borrow::Cow, path::PathBuf, time::Duration};

use leasehold_core::{Error, Operation, Result, Span, backend::Finding};

/// What all database servers let choose.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub(crate) tls: Tls,
    pub(crate) tls_ca: Option<PathBuf>,
    pub(crate) command_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) connections: usize,
    pub(crate) session: Option<Duration>,
}

/// Whether the connection is encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tls {
    /// It is not. For a server on the same machine, or a network that encrypts by itself.
    #[default]
    Off,
    /// It is, and the server's certificate has to be good for its name.
    Verified,
}

impl Default for Common {
    fn default() -> Self {
        Self {
            tls: Tls::Off,
            tls_ca: None,
            command_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(5),
            connections: 4,
            session: None,
        }
    }
}

/// Words and their values, as a URL has them.
pub(crate) type Words<'u> = Vec<(Cow<'u, str>, Cow<'u, str>)>;

/// The words that all of them know, besides those of every store.
pub(crate) const WORDS: &str =
    "command_timeout, connect_timeout, connections, session, sslmode, tls_ca, prefix, ttl";

impl Common {
    /// Takes the options that all servers know; the others are given back.
    pub(crate) fn read(url: &str) -> Result<(Self, Words<'_>)> {
        let (mut common, mut others) = (Self::default(), Vec::new());
        let mut asked = None;
        let query = url.split_once('?').map_or("", |(_, query)| query);
        for (word, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*word {
                "command_timeout" => common.command_timeout = duration(&word, &value)?,
                "connect_timeout" => common.connect_timeout = duration(&word, &value)?,
                "connections" => common.connections = count(&word, &value)?,
                "session" => common.session = Some(session(duration(&word, &value)?)?),
                "sslmode" => asked = Some(tls(&value)?),
                "tls_ca" => common.tls_ca = Some(PathBuf::from(&*value)),
                "prefix" | "ttl" => {}
                _ => others.push((word, value)),
            }
        }
        common.tls = match (asked, &common.tls_ca) {
            (Some(Tls::Off), Some(_)) => {
                return Err(config("tls_ca in the store URL is for TLS, which sslmode=disable turns off"));
            }
            (None, Some(_)) => Tls::Verified,
            (asked, _) => asked.unwrap_or_default(),
        };
        if query.contains('@') && !others.is_empty() {
            // A question mark in a password ends up here: what is refused may be the rest of it.
            return Err(config(ENCODE));
        }
        Ok((common, others))
    }
}

pub(crate) const ENCODE: &str =
    "this URL cannot be read; write /, ?, # and @ within a user name or a password as %2F, %3F, %23 and %40";

fn tls(value: &str) -> Result<Tls> {
    match value {
        "disable" => Ok(Tls::Off),
        "require" | "verify-full" => Ok(Tls::Verified),
        _ => Err(config(
            "sslmode in the store URL is disable or verify-full; anything in between can be talked out of it",
        )),
    }
}

fn duration(word: &str, value: &str) -> Result<Duration> {
    Span::from(value).get().map_err(|message| config(format!("{word}: {message}")))
}

/// How long the server is to keep a session that it does not hear of, in whole seconds as it counts them.
pub(crate) fn session(patience: Duration) -> Result<Duration> {
    if !(Duration::from_secs(2)..=Duration::from_secs(3600)).contains(&patience) {
        return Err(config(
            "session is how long the server keeps ours without a sign of life: from 2s to 1h",
        ));
    }
    Ok(Duration::from_secs(patience.as_secs()))
}

fn count(word: &str, value: &str) -> Result<usize> {
    let number = value.parse().ok().filter(|number| (1..=1000).contains(number));
    number.ok_or_else(|| config(format!("{word} in the store URL is a number from 1 to 1000")))
}

pub(crate) fn unknown(kind: &str, word: &str, known: &str) -> Error {
    let is_word = word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let shown = if is_word { format!(" {word:?}") } else { String::new() };
    config(format!("unknown option{shown} in the store URL; {kind} knows {known}, {WORDS}"))
}

pub(crate) fn config(message: impl Into<Cow<'static, str>>) -> Error {
    Error::config(Operation::Connect, message)
}

/// What there is to say of connections to these hosts.
pub(crate) fn encryption<'h>(tls: Tls, hosts: impl IntoIterator<Item = &'h str>) -> Option<Finding> {
    let finding = Finding::unencrypted(hosts).filter(|_| tls == Tls::Off)?;
    Some(finding.remedy("add sslmode=verify-full to the store URL"))
}

#[cfg(test)]
mod tests {
    use proptest::{proptest, test_runner::Config};

    use super::*;

    /// Anything behind a scheme, with options that are ours, theirs, or nobody's.
    const TAIL: &str = "[a-z0-9%@:,/#.+锁\\[\\]]{0,30}[?]?((command_timeout|connections|sslmode|listen|host|port|what)=[a-z0-9%@+.]{0,8}&?){0,3}";

    #[test]
    fn who_names_an_authority_wants_tls() {
        let tls = |query: &str| Common::read(&format!("x://h/d?{query}")).map(|(common, _)| common.tls);
        assert_eq!(tls("").expect("fine"), Tls::Off);
        assert_eq!(tls("tls_ca=/a.pem").expect("fine"), Tls::Verified);
        assert_eq!(tls("tls_ca=/a.pem&sslmode=verify-full").expect("fine"), Tls::Verified);
        assert!(tls("tls_ca=/a.pem&sslmode=disable").is_err());
        assert!(tls("sslmode=prefer").is_err(), "it can be talked out of it");
    }

    #[test]
    fn a_session_is_neither_too_short_nor_too_long() {
        let session =
            |value: &str| Common::read(&format!("x://h/d?session={value}")).map(|(common, _)| common.session);
        assert_eq!(session("10s").expect("fine"), Some(Duration::from_secs(10)));
        assert!(["1s", "2h", "soon"].into_iter().all(|value| session(value).is_err()));
    }

    proptest! {
        #![proptest_config(Config { cases: 1000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_options_make_it_panic(tail in TAIL) {
            if let Ok((common, _)) = Common::read(&tail) {
                assert!((1..=1000).contains(&common.connections));
            }
        }

        #[cfg(feature = "postgres")]
        #[test]
        fn no_text_makes_postgres_panic(tail in TAIL) {
            for scheme in ["", "postgres://", "postgresql://"] {
                drop(crate::PostgresConfig::from_url(&format!("{scheme}{tail}")));
            }
        }

        #[cfg(feature = "mysql")]
        #[test]
        fn no_text_makes_mysql_panic(tail in TAIL) {
            for scheme in ["", "mysql://", "mariadb://"] {
                drop(crate::MySqlConfig::from_url(&format!("{scheme}{tail}")));
            }
        }
    }
}
