//! Where a MongoDB is and where in it the locks are.
//!
//! A URL says it all, in the driver's own words: `mongodb://user:password@host,host/database?replicaSet=rs0`. Ours among
//! them are `collection` and `command_timeout`. No error repeats the URL, and `Debug` shows no password.

use std::{borrow::Cow, fmt, time::Duration};

use leasehold_core::{Error, Operation, Result, Span};

/// How to reach a MongoDB.
#[derive(Clone)]
#[must_use = "a configuration does nothing until a store is opened with it"]
pub struct MongodbConfig {
    /// For the driver: without our own words.
    pub(crate) url: String,
    pub(crate) collection: String,
    pub(crate) command_timeout: Duration,
}

impl MongodbConfig {
    /// The words of ours that [`from_url`](Self::from_url) knows after the `?`, besides those of every store (`prefix`,
    /// `ttl`). All others are the driver's.
    pub const OPTIONS: [&'static str; 2] = ["collection", "command_timeout"];

    /// Reads a URL. The options of every store, `prefix` and `ttl`, are left to whoever makes the client; those of the
    /// driver, to the driver when the store is opened. Without a database in it, the locks are in `leasehold`.
    ///
    /// # Errors
    /// `Config` if it cannot be read. The message never repeats it.
    pub fn from_url(url: &str) -> Result<Self> {
        if !url.starts_with("mongodb://") && !url.starts_with("mongodb+srv://") {
            return Err(config(
                "write it like mongodb://host/database or mongodb+srv://cluster.example/database",
            ));
        }
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let mut parsed = Self {
            url: String::new(),
            collection: "locks".to_owned(),
            command_timeout: Duration::from_secs(10),
        };
        let mut drivers = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let word = pair.split('=').next().unwrap_or_default();
            let value =
                form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value).unwrap_or_default();
            match word {
                "prefix" | "ttl" => {}
                "collection" => parsed.collection = named(&value)?,
                "command_timeout" => parsed.command_timeout = duration(&value)?,
                _ => drivers.push(pair),
            }
        }
        // The driver wants a slash before its options.
        let slash = if place.splitn(4, '/').count() < 4 { "/" } else { "" };
        parsed.url = format!("{place}{slash}?{}", drivers.join("&"));
        Ok(parsed)
    }

    /// The collection of the locks; cells are beside it, in another that is called like it with `.cells` behind. `locks`
    /// unless told otherwise.
    pub fn with_collection(mut self, collection: &str) -> Self {
        collection.clone_into(&mut self.collection);
        self
    }

    /// How long one request may take, the search for a primary included; 10 s unless told otherwise.
    pub fn with_command_timeout(mut self, timeout: Duration) -> Self {
        self.command_timeout = timeout;
        self
    }
}

impl fmt::Debug for MongodbConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MongodbConfig")
            .field("collection", &self.collection)
            .field("command_timeout", &self.command_timeout)
            .finish_non_exhaustive()
    }
}

fn named(collection: &str) -> Result<String> {
    let is_fine =
        !collection.is_empty() && !collection.starts_with("system.") && !collection.contains(['$', '\0']);
    if is_fine {
        Ok(collection.to_owned())
    } else {
        Err(config("collection in the store URL is no name of one"))
    }
}

fn duration(value: &str) -> Result<Duration> {
    let length = Span::from(value).get();
    length.map_err(|_| config("command_timeout in the store URL is a length of time, such as 5s"))
}

pub(crate) fn config(message: impl Into<Cow<'static, str>>) -> Error {
    Error::config(Operation::Connect, message)
}

#[cfg(test)]
mod tests {
    use proptest::{proptest, test_runner::Config};

    use super::*;

    proptest! {
        #![proptest_config(Config { cases: 1000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_text_makes_it_panic(
            text in "(mongodb([+]srv)?://)?[a-z0-9%@:,/?&=#.+锁\\[\\]]{0,40}([?&](collection|command_timeout)=[a-z0-9$.%]{0,8})?"
        ) {
            drop(MongodbConfig::from_url(&text));
        }
    }

    #[test]
    fn our_own_words_are_not_the_drivers() {
        let config = MongodbConfig::from_url(
            "mongodb://u:p@a,b?prefix=x&replicaSet=rs0&collection=my%20locks&command_timeout=2s&w=1",
        )
        .unwrap();
        assert_eq!(config.url, "mongodb://u:p@a,b/?replicaSet=rs0&w=1");
        assert_eq!(
            (config.collection.as_str(), config.command_timeout),
            ("my locks", Duration::from_secs(2))
        );
        assert!(!format!("{config:?}").contains("u:p"), "{config:?}");
        assert_eq!(MongodbConfig::from_url("mongodb+srv://h/db").unwrap().url, "mongodb+srv://h/db?");
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_not_repeated() {
        for url in ["mongo://secret", "mongodb://h?collection=", "mongodb://h?command_timeout=secret"] {
            let error = MongodbConfig::from_url(url).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
