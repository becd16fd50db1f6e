//! Store URLs, taken apart: `scheme:rest?option=value&…`.
//!
//! What comes after the scheme is the store's own business. Options are the same words for every store where they
//! mean the same; a word that no one knows is an error that says which ones are known.

use std::{borrow::Cow, time::Duration};

use leasehold_core::{Error, Operation, Result};

/// A URL in its parts.
#[derive(Debug)]
#[cfg_attr(
    not(all(
        feature = "sqlite",
        any(
            feature = "postgres",
            feature = "mysql",
            feature = "redis",
            feature = "zookeeper",
            feature = "etcd",
            feature = "mongodb",
            feature = "memcached"
        )
    )),
    allow(dead_code, reason = "some of it is for stores this build leaves out")
)]
pub(crate) struct StoreUrl<'a> {
    /// The whole of it, for stores that read their own.
    pub(crate) whole: &'a str,
    pub(crate) scheme: &'a str,
    /// Between the scheme and the options.
    pub(crate) rest: &'a str,
    options: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> StoreUrl<'a> {
    pub(crate) fn parse(url: &'a str) -> Result<Self> {
        // Not quoted in the message: a URL may carry a password.
        let no_scheme = || config("this is not a store URL; write it like sqlite:locks.db or memory:");
        let (scheme, rest) = url.split_once(':').ok_or_else(no_scheme)?;
        if !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) {
            return Err(no_scheme());
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        Ok(Self { whole: url, scheme, rest, options: form_urlencoded::parse(query.as_bytes()).collect() })
    }

    /// Takes an option out; the last one counts.
    pub(crate) fn take(&mut self, word: &str) -> Option<Cow<'a, str>> {
        let at = self.options.iter().rposition(|(name, _)| name == word)?;
        let (_, value) = self.options.swap_remove(at);
        self.options.retain(|(name, _)| name != word);
        Some(value)
    }

    /// Takes out an option that is a length of time.
    pub(crate) fn take_duration(&mut self, word: &str) -> Result<Option<Duration>> {
        let Some(text) = self.take(word) else { return Ok(None) };
        let duration = leasehold_core::Span::from(&*text).get();
        duration.map(Some).map_err(|message| self.refused(format!("{word}: {message}")))
    }

    /// Refuses what nobody took.
    pub(crate) fn finish(&self, known: &[&str]) -> Result<()> {
        match self.options.first() {
            None => Ok(()),
            Some((word, _)) => {
                let known = known.join(", ");
                let scheme = self.scheme;
                Err(self.refused(format!("unknown option {word:?} in the store URL; {scheme} knows {known}")))
            }
        }
    }

    /// An option that is refused. A question mark in a password ends up among the options: what is refused may be the
    /// rest of it, and is not repeated.
    fn refused(&self, message: String) -> Error {
        let query = self.whole.split_once('?').map_or("", |(_, query)| query);
        if query.contains('@') { config(ENCODE) } else { config(message) }
    }
}

const ENCODE: &str =
    "this URL cannot be read; write /, ?, # and @ within a user name or a password as %2F, %3F, %23 and %40";

pub(crate) fn config(message: impl Into<Cow<'static, str>>) -> Error {
    Error::config(Operation::Connect, message)
}

#[cfg(test)]
mod tests {
    use proptest::{proptest, test_runner::Config};

    use super::*;

    #[test]
    fn options_are_taken_out_and_the_rest_is_refused() {
        let mut url = StoreUrl::parse("sqlite:/tmp/a b.db?prefix=shop%3A&ttl=10s&nope=1").unwrap();
        assert_eq!((url.scheme, url.rest), ("sqlite", "/tmp/a b.db"));
        assert_eq!(url.take("prefix").as_deref(), Some("shop:"));
        assert_eq!(url.take_duration("ttl").unwrap(), Some(Duration::from_secs(10)));
        let message = url.finish(&["prefix", "ttl"]).unwrap_err().to_string();
        assert!(message.contains("\"nope\"") && message.contains("prefix, ttl"), "{message}");
    }

    #[test]
    fn what_is_no_url_is_not_repeated() {
        let message = StoreUrl::parse("secret").unwrap_err().to_string();
        assert!(!message.contains("secret"), "{message}");
    }

    #[test]
    fn what_may_be_the_rest_of_a_password_is_not_repeated() {
        let mut url = StoreUrl::parse("redis://u:1?ttl=secret@host").unwrap();
        assert!(!url.take_duration("ttl").unwrap_err().to_string().contains("secret"));
        let url = StoreUrl::parse("memory:1?secret&a@host").unwrap();
        assert!(!url.finish(&[]).unwrap_err().to_string().contains("secret"));
        let message = StoreUrl::parse("secret@host:6379").unwrap_err().to_string();
        assert!(!message.contains("secret"), "{message}");
    }

    proptest! {
        #![proptest_config(Config { cases: 2000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_text_makes_taking_a_url_apart_panic(text in "([a-z+]{0,9}:)?[a-z0-9%@:,/?&=#.+锁]{0,40}|.{0,30}") {
            if let Ok(mut url) = StoreUrl::parse(&text) {
                drop(url.take("prefix"));
                drop(url.take_duration("ttl"));
                drop(url.finish(&["prefix"]));
            }
        }

        #[test]
        fn an_option_is_read_back_whatever_is_in_it(prefix in ".{0,20}", rest in "[a-z/.]{0,9}") {
            let query: String = form_urlencoded::Serializer::new(String::new()).append_pair("prefix", &prefix).finish();
            let whole = format!("sqlite:{rest}?{query}");
            let mut url = StoreUrl::parse(&whole).unwrap();
            assert_eq!((url.take("prefix").as_deref(), url.rest), (Some(&*prefix), &*rest));
            url.finish(&[]).unwrap();
        }
    }
}
