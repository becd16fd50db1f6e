//! A configuration from a URL.
//!
//! No error repeats the URL: it may carry a password.

use std::{borrow::Cow, time::Duration};

use leasehold_core::{Error, Operation, Result, Span};

use super::{Address, Layout, Publish, RedisConfig, Servers};

/// The port of Redis.
const PORT: u16 = 6379;

/// The port of Sentinel.
const SENTINEL_PORT: u16 = 26379;

impl RedisConfig {
    /// Reads a URL. The options of every store, `prefix` and `ttl`, are left to whoever makes the client.
    ///
    /// | URL | servers |
    /// |---|---|
    /// | `redis://user:password@host:6379/db` | one |
    /// | `redis+unix:///path/of/socket` | one, on this machine |
    /// | `redis+sentinel://user:password@host:26379,host:26379/mymaster` | the primary that these sentinels name |
    /// | `redis+replicas://user:password@host:6379,host:6379/db` | whichever of these is the primary |
    /// | `redis+cluster://user:password@host:6379,host:6379` | the cluster that these are part of |
    ///
    /// With `rediss` in place of `redis` all of them talk TLS, the sentinels as well.
    ///
    /// # Errors
    /// `Config` if it cannot be read. The message never repeats the URL: it may carry a password.
    pub fn from_url(url: &str) -> Result<Self> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| config(SHAPE))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (family, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
        let tls = match family {
            "redis" => false,
            "rediss" => true,
            _ => return Err(config(SHAPE)),
        };
        let mut parsed = match kind {
            "unix" if rest.starts_with('/') && !tls => Self::unix(decoded(rest)),
            "" | "sentinel" | "replicas" | "cluster" => Self::from_authority(kind, rest, tls)?,
            _ => return Err(config(SHAPE)),
        };
        for (word, value) in form_urlencoded::parse(query.as_bytes()) {
            // A question mark in a password ends up here: what is refused may be the rest of it.
            let rest_of_password = |error| if query.contains('@') { config(ENCODE) } else { error };
            parsed = parsed.with_option(&word, &value).map_err(rest_of_password)?;
        }
        Ok(parsed)
    }

    /// The members of a `redlock+redis://user:password@host,host,host/db` URL: servers that know nothing of each other.
    pub(crate) fn members_from_url(url: &str) -> Result<Vec<Self>> {
        let parts = url.strip_prefix("redlock+").and_then(|rest| rest.split_once("://"));
        let (scheme, rest) = parts
            .filter(|(scheme, _)| matches!(*scheme, "redis" | "rediss"))
            .ok_or_else(|| config("write a Redlock like redlock+redis://host,host,host"))?;
        let together = Self::from_url(&format!("{scheme}+replicas://{rest}"))?;
        let Servers::Replicas(addresses) = &together.servers else { return Err(config(SHAPE)) };
        let member = |address: &Address| Self { servers: Servers::One(address.clone()), ..together.clone() };
        Ok(addresses.iter().map(member).collect())
    }

    /// `user:password@host:port,host:port/db`, and for sentinels the name of the primary instead of the database.
    fn from_authority(kind: &str, rest: &str, tls: bool) -> Result<Self> {
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if path.contains('@') {
            return Err(config(ENCODE));
        }
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, authority),
        };
        if hosts.contains(',') && hosts.split(',').any(str::is_empty) {
            return Err(config("a server in the store URL has no name; is there a comma too many?"));
        }
        let usual_port = if kind == "sentinel" { SENTINEL_PORT } else { PORT };
        let addresses = hosts.split(',').map(|host| {
            let (host, port) = host_and_port(host, usual_port)?;
            Ok(Address::Tcp { host, port, tls })
        });
        let mut addresses = addresses.collect::<Result<Vec<_>>>()?;
        let mut parsed = Self::of(match (kind, addresses.len()) {
            ("sentinel", _) if path.is_empty() => {
                return Err(config(
                    "name the primary after the sentinels, as in redis+sentinel://host/mymaster",
                ));
            }
            ("sentinel", _) => Servers::Sentinels { sentinels: addresses, primary: decoded(path) },
            ("replicas", _) => Servers::Replicas(addresses),
            ("cluster", _) => Servers::Cluster(addresses),
            (_, 1) => Servers::One(addresses.remove(0)),
            _ => {
                return Err(config(
                    "say what these servers are to each other: redis+sentinel://, redis+replicas:// or redis+cluster://",
                ));
            }
        });
        if let Some(user) = user {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            parsed.username = Some(decoded(name)).filter(|name| !name.is_empty());
            parsed.password = Some(decoded(password)).filter(|password| !password.is_empty());
        }
        if path.is_empty() || kind == "sentinel" { Ok(parsed) } else { parsed.with_option("db", path) }
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
            "replica_timeout" => self.replica_timeout = duration(word, value)?,
            "sentinel_password" => self.sentinel_password = Some(value.to_owned()),
            "sentinel_username" => self.sentinel_username = Some(value.to_owned()),
            "wait_replicas" => self.wait_replicas = number()?,
            "username" => self.username = Some(value.to_owned()),
            "tls_ca" => self.tls_ca = Some(value.into()),
            "layout" if value == "plain" => self.layout = Layout::Plain,
            "layout" if value == "redisson" => self.layout = Layout::Redisson,
            "publish" if value == "sharded" => self.publish = Publish::Sharded,
            "publish" if value == "plain" => self.publish = Publish::Plain,
            "publish" if value == "both" => self.publish = Publish::Both,
            "publish" => return Err(config("publish in the store URL is sharded, plain or both")),
            "layout" => return Err(config("layout in the store URL is redisson or plain")),
            "prefix" | "ttl" => {}
            other => {
                let known = Self::OPTIONS.join(", ");
                // What is no word may be part of a password with a question mark in it.
                let is_word = other.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
                let shown = if is_word { format!(" {other:?}") } else { String::new() };
                return Err(config(format!(
                    "unknown option{shown} in the store URL; Redis knows {known}, prefix, ttl (write a ? in a \
                     password as %3F)"
                )));
            }
        }
        Ok(self)
    }
}

const SHAPE: &str = "this is not the URL of a Redis; write it like redis://host:6379, rediss://host, redis+unix:///path, \
     redis+sentinel://host,host/mymaster, redis+replicas://host,host or redis+cluster://host,host";

const ENCODE: &str =
    "this URL cannot be read; write /, ?, # and @ within a user name or a password as %2F, %3F, %23 and %40";

/// `host`, `host:port`, `[::1]:port`, and nothing for this machine.
fn host_and_port(text: &str, usual_port: u16) -> Result<(String, u16)> {
    let bad_port = |_| config("the port in the store URL is a number from 1 to 65535");
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':').ok_or_else(|| config(SHAPE))?)),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Ok(usual_port), |port| port.parse().map_err(bad_port))?;
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
    use proptest::{proptest, test_runner::Config};

    use super::*;

    fn tcp(host: &str, port: u16, tls: bool) -> Address {
        Address::Tcp { host: host.to_owned(), port, tls }
    }

    #[test]
    fn several_servers_are_sentinels_replicas_or_a_cluster() {
        let parsed =
            RedisConfig::from_url("redis+sentinel://u:p@a,b:7/main?db=2&sentinel_password=x").unwrap();
        let sentinels = vec![tcp("a", SENTINEL_PORT, false), tcp("b", 7, false)];
        assert_eq!(parsed.servers, Servers::Sentinels { sentinels, primary: "main".to_owned() });
        assert_eq!((parsed.db, parsed.sentinel_password.as_deref()), (2, Some("x")));
        assert_eq!((parsed.scheme(), parsed.place().as_str()), ("redis+sentinel", "a:26379,b:7/main?db=2"));
        let parsed = RedisConfig::from_url("rediss+replicas://a,b/3").unwrap();
        assert_eq!(parsed.servers, Servers::Replicas(vec![tcp("a", PORT, true), tcp("b", PORT, true)]));
        assert_eq!((parsed.scheme(), parsed.db), ("rediss+replicas", 3));
        let parsed = RedisConfig::from_url("redis+cluster://a:1,[::1]:2").unwrap();
        assert_eq!(parsed.servers, Servers::Cluster(vec![tcp("a", 1, false), tcp("::1", 2, false)]));
        for bad in [
            "redis://a,b",
            "redis+sentinel://a",
            "rediss+unix:///a",
            "redis+what://a",
            "redis+replicas://a,",
            "redis+cluster://a,,b",
            "redis+sentinel://,a/main",
        ] {
            assert!(RedisConfig::from_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_members_of_a_redlock_are_single_servers() {
        let members =
            RedisConfig::members_from_url("redlock+rediss://:p@a,b:7,c/2?command_timeout=1s").unwrap();
        let places: Vec<String> = members.iter().map(RedisConfig::place).collect();
        assert_eq!(places, ["a:6379/2", "b:7/2", "c:6379/2"]);
        assert!(members.iter().all(|member| member.scheme() == "rediss" && member.password.is_some()));
        for bad in
            ["redis://a,b,c", "redlock+redis:a", "redlock+http://a,b,c", "redlock+redis+cluster://a,b,c"]
        {
            assert!(RedisConfig::members_from_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_url_says_it_all() {
        let url = "rediss://dep%40loy:s%2Fe+c@[::1]:7000/2?command_timeout=250ms&layout=plain&prefix=x&wait_replicas=2&tls_ca=/ca.pem";
        let parsed = RedisConfig::from_url(url).unwrap();
        assert_eq!(parsed.servers, Servers::One(tcp("::1", 7000, true)));
        assert_eq!(
            (parsed.username.as_deref(), parsed.password.as_deref()),
            (Some("dep@loy"), Some("s/e+c"))
        );
        assert_eq!((parsed.db, parsed.layout, parsed.wait_replicas), (2, Layout::Plain, 2));
        assert_eq!(parsed.command_timeout, Duration::from_millis(250));
        assert_eq!(parsed.place(), "[::1]:7000/2");
    }

    #[test]
    fn what_is_left_out_is_usual() {
        let parsed = RedisConfig::from_url("redis://").unwrap();
        assert_eq!(parsed.servers, Servers::One(tcp("127.0.0.1", PORT, false)));
        let parsed = RedisConfig::from_url("redis+unix:///run/redis.sock?db=3&username=u").unwrap();
        assert_eq!((parsed.servers, parsed.db), (Servers::One(Address::Unix("/run/redis.sock".into())), 3));
        let parsed = RedisConfig::from_url("redis://:secret@cache").unwrap();
        assert_eq!((parsed.username, parsed.password.as_deref()), (None, Some("secret")));
    }

    #[test]
    fn secrets_are_not_shown() {
        for url in ["redis://u:hunter2@h:99999/", "redis://u:1?hunter2@h", "redis://u:1?hunter2@h=3"] {
            assert!(!RedisConfig::from_url(url).unwrap_err().to_string().contains("hunter2"), "{url}");
        }
        let shown = format!("{:?}", RedisConfig::from_url("redis://u:hunter2@h").unwrap());
        assert!(!shown.contains("hunter2"), "{shown}");
        for bad in
            ["redis:x", "http://x", "redis+unix://x", "redis://h/x", "redis://h?layout=x", "redis://h?x=1"]
        {
            assert!(RedisConfig::from_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_password_that_is_not_encoded_is_not_shown_in_parts() {
        for url in [
            "redis://u:1?hunter2@h",
            "redis://u:1?ttl=1&hunter2@h",
            "redis+sentinel://u:1/hunter2@h",
            "redis+sentinel://u:1/2?command_timeout=hunter2@h",
        ] {
            let message = RedisConfig::from_url(url).unwrap_err().to_string();
            assert!(!message.contains("hunter2") && message.contains("%3F"), "{message}");
        }
    }

    proptest! {
        #![proptest_config(Config { cases: 2000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_text_makes_reading_a_url_panic(
            url in "(redis|rediss|redlock[+]redis)([+](unix|sentinel|replicas|cluster))?:?/{0,3}[a-z0-9%@:,/?&=#.\\[\\]锁]{0,40}",
        ) {
            drop(RedisConfig::from_url(&url));
            drop(RedisConfig::members_from_url(&url));
        }

        #[test]
        fn no_password_is_shown_whatever_is_in_it(
            kind in "([+](sentinel|replicas|cluster))?",
            password in "(1|db=|hunter2|[/?#@:,&=%+]){0,6}hunter2",
            tail in "(/main|/1)?([?](db=1|x=y|ttl=z))?",
        ) {
            let url = format!("redis{kind}://u:{password}@h{tail}");
            let shown = match RedisConfig::from_url(&url) {
                Ok(parsed) => format!("{parsed:?} {} {}", parsed.place(), parsed.scheme()),
                Err(error) => format!("{error} {error:?}"),
            };
            assert!(!shown.contains("hunter2"), "{url} is shown as {shown}");
        }

        #[test]
        fn what_is_percent_encoded_is_read_back(
            user in ".{1,12}", password in ".{1,12}", host in "[a-z0-9.-]{1,12}", port in 1..=u16::MAX, db in 0..99u32,
        ) {
            let encoded = |text: &str| text.bytes().flat_map(|byte| format!("%{byte:02x}").into_bytes()).map(char::from).collect::<String>();
            let url = format!("redis://{}:{}@{host}:{port}/{db}", encoded(&user), encoded(&password));
            let parsed = RedisConfig::from_url(&url).unwrap();
            assert_eq!(parsed.servers, Servers::One(tcp(&host, port, false)));
            assert_eq!((parsed.username, parsed.password, parsed.db), (Some(user), Some(password), db));
        }
    }
}
