//! Names of locks, checked once at the edge.
//!
//! A name is free text of 1 to 512 bytes without control characters. A [`Key`] is such a name with the client's
//! prefix before it, which is what a store sees. Stores encode keys injectively; they never re-check them.

use std::{fmt, sync::Arc};

use crate::error::{Error, Operation};

/// Longest name, prefix included, in bytes of UTF-8.
pub const MAX_NAME: usize = 512;

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

    /// A name that exists in a store already, whoever made it: nothing but its length is checked.
    pub fn existing(prefix: &str, name: &str) -> Result<Self, Error> {
        if name.is_empty() || prefix.len() + name.len() > usize::from(u16::MAX) {
            return Err(Error::config(Operation::Name, "a name has 1 to 65535 bytes"));
        }
        Ok(Self::join(prefix, name))
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

fn refusal(prefix: &str, name: &str) -> Option<String> {
    let length = prefix.len() + name.len();
    if name.is_empty() {
        return Some("the name is empty; give the lock a name".to_owned());
    }
    if length > MAX_NAME {
        return Some(format!("the name has {length} bytes with its prefix; {MAX_NAME} is the limit"));
    }
    let position = prefix.chars().chain(name.chars()).position(char::is_control)?;
    Some(format!(
        "the name, prefix included, has a control character at position {position}; use printable text"
    ))
}

#[cfg(test)]
mod tests {
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
}
