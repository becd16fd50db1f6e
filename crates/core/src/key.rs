//! Names of locks, checked once at the edge.
//!
//! A name is free text of 1 to 512 bytes without control characters. A [`Key`] is such a name with the client's
//! prefix before it, which is what a store sees. Stores encode keys injectively; they never re-check them.
//!
//! A prefix ends with its only colon. So no prefix is the beginning of another, a key tells where its prefix ends, and
//! no name of one prefix is a name of another. A client without a prefix is outside of that: it has every name as
//! it is in the store. `docs/decisions/0005-prefixes.md` says why.

use std::{fmt, sync::Arc};

use crate::error::{Error, Operation};

/// Longest name, prefix included, in bytes of UTF-8.
pub const MAX_NAME: usize = 512;

/// Beginnings of what lies beside locks on Redis, Redisson's and ours: no name may begin with what is beside another.
const RESERVED: [&str; 2] = ["leasehold_", "redisson_"];

/// A checked name, as the store sees it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    full: Arc<str>,
    prefix: u16,
}

impl Key {
    /// Checks a name that we are about to create.
    pub fn new(prefix: &str, name: &str) -> Result<Self, Error> {
        match refusal(prefix, name) {
            None => Ok(Self::join(prefix, name)),
            Some(why) => Err(Error::config(Operation::Name, why)),
        }
    }

    /// A name that exists in a store already, whoever made it: nothing but its length and the prefix is checked.
    pub fn existing(prefix: &str, name: &str) -> Result<Self, Error> {
        checked(prefix)?;
        if name.is_empty() || prefix.len() + name.len() > usize::from(u16::MAX) {
            return Err(Error::config(Operation::Name, "a name has 1 to 65535 bytes"));
        }
        Ok(Self::join(prefix, name))
    }

    /// What the keys of all names begin with that begin so themselves.
    pub fn beginning(prefix: &str, start: &str) -> Result<String, Error> {
        checked(prefix)?;
        Ok([prefix, start].concat())
    }

    fn join(prefix: &str, name: &str) -> Self {
        let full = if prefix.is_empty() { name.into() } else { [prefix, name].concat().into() };
        Self { full, prefix: prefix.len() as u16 }
    }

    /// What the store sees: the prefix and the name.
    pub fn full(&self) -> &str {
        &self.full
    }

    /// What the store sees, to keep.
    pub fn shared(&self) -> Arc<str> {
        self.full.clone()
    }

    /// The name as the user gave it.
    pub fn name(&self) -> &str {
        &self.full[usize::from(self.prefix)..]
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?})", self.full)
    }
}

fn checked(prefix: &str) -> Result<(), Error> {
    prefix_refusal(prefix).map_or(Ok(()), |why| Err(Error::config(Operation::Name, why)))
}

fn refusal(prefix: &str, name: &str) -> Option<String> {
    if let Some(why) = prefix_refusal(prefix) {
        return Some(why.to_owned());
    }
    let length = prefix.len() + name.len();
    if name.is_empty() {
        return Some("the name is empty; give the lock a name".to_owned());
    }
    if length > MAX_NAME {
        return Some(format!("the name has {length} bytes with its prefix; {MAX_NAME} is the limit"));
    }
    // Most names are plain, and that is seen many letters at a time.
    let is_plain =
        |text: &str| text.bytes().fold(true, |plain, letter| plain & matches!(letter, b' '..=b'~'));
    if is_plain(prefix) && is_plain(name) {
        return None;
    }
    let position = prefix.chars().chain(name.chars()).position(char::is_control)?;
    Some(format!(
        "the name, prefix included, has a control character at position {position}; use printable text"
    ))
}

/// Braces are what Redis keeps keys together by: with one that is not closed, names of this prefix could be what lies
/// beside names of another.
fn prefix_refusal(prefix: &str) -> Option<&'static str> {
    let last = prefix.len().checked_sub(1)?;
    if prefix.find(':') != Some(last) {
        Some(
            "the prefix must end with its only colon, as in shop: or prod/shop:, or names would be in two prefixes",
        )
    } else if !closes_braces(prefix) {
        Some("the prefix must close the braces that it opens, with something in them")
    } else if prefix.chars().any(char::is_control) {
        Some("the prefix has a control character; use visible characters")
    } else if prefix.len() >= MAX_NAME {
        Some("the prefix leaves no room for names, which have 512 bytes with it")
    } else if RESERVED.iter().any(|reserved| prefix.starts_with(reserved)) {
        Some("the prefix begins like what stores keep beside locks; choose another")
    } else {
        None
    }
}

fn closes_braces(prefix: &str) -> bool {
    let mut braces = prefix.char_indices().filter(|(_, sign)| matches!(sign, '{' | '}'));
    while let Some((open, sign)) = braces.next() {
        let closed = braces.next().filter(|(_, sign)| *sign == '}');
        if sign != '{' || closed.is_none_or(|(close, _)| close == open + 1) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, prop_assert_eq, proptest, test_runner::Config};

    use super::*;

    #[test]
    fn names_are_checked_at_the_edge() {
        for bad in ["", "a\0b", "a\nb", "\u{1b}[31m", "\u{85}", &"x".repeat(513), &"x".repeat(1 << 20)] {
            assert!(Key::new("", bad).is_err(), "{:?}", &bad[..bad.len().min(20)]);
        }
        for good in ["a", "order:42", "{a}{b}", "..", "a/b", "锁", " a ", &"x".repeat(512)] {
            assert_eq!(Key::new("", good).unwrap().name(), good);
        }
    }

    #[test]
    fn a_prefix_counts_and_is_kept_apart() {
        let key = Key::new("shop:", "a").unwrap();
        assert_eq!((key.full(), key.name()), ("shop:a", "a"));
        assert!(Key::new("shop:", &"x".repeat(510)).is_err());
        assert!(Key::new("sh\nop:", "a").is_err());
    }

    #[test]
    fn a_prefix_ends_with_its_only_colon() {
        let long = format!("{}:", "x".repeat(MAX_NAME));
        let braces = ["{app:", "app}:", "}app{:", "{}:", "{a{b}}:"];
        let others = ["shop", "a:b:", ":a", "::", "redisson_lock_queue:", "leasehold_waits:", "a\n:", &long];
        for bad in braces.into_iter().chain(others) {
            assert!(Key::new(bad, "a").is_err() && Key::existing(bad, "a").is_err(), "{bad}");
            assert!(Key::beginning(bad, "").is_err(), "{bad}");
        }
        for good in ["", "shop:", "prod/shop:", "{app}:", "leasehold:", ":"] {
            assert_eq!(Key::existing(good, "a:b").unwrap().name(), "a:b");
        }
    }

    proptest! {
        #![proptest_config(Config { cases: 4000, failure_persistence: None, ..Config::default() })]

        /// However a text is cut in two, at most one cut is a prefix and a name.
        #[test]
        fn no_key_has_two_prefixes(text in "([ab/]{0,3}[:{}]){1,3}[ab:{}]{1,3}") {
            let cuts = (1..text.len()).filter(|cut| Key::existing(&text[..*cut], &text[*cut..]).is_ok());
            prop_assert!(cuts.count() <= 1, "{text}");
        }

        #[test]
        fn what_begins_with_one_prefix_is_of_that_prefix(
            one in "[ab]{0,2}[:/]?[ab]{0,1}:", other in "[ab]{0,2}[:/]?[ab]{0,1}:", name in "[ab:*?/]{1,4}",
        ) {
            let (Ok(ours), Ok(theirs)) = (Key::beginning(&one, ""), Key::new(&other, &name)) else { return Ok(()) };
            prop_assert_eq!(theirs.full().starts_with(&ours), one == other);
            prop_assert_eq!(theirs.name(), &name);
        }
    }
}
