//! Keys: what a name is called in memcached.
//!
//! A key there has at most 250 bytes and neither blanks nor control characters. What is not plain ASCII is written as
//! `%XX`, which keeps two names apart; what is too long then is replaced by its SHA-256. The name itself is in the item
//! as well, so a hashed one is listed like any other, and an item that belongs to another name is not taken for ours.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The longest written-out name; longer ones are hashed.
const LONGEST: usize = 200;

/// The item that tells the server's time.
pub(crate) const CLOCK: &str = "leasehold:clock";

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Record,
    Cell,
}

impl Sort {
    fn written(self) -> &'static str {
        match self {
            Self::Record => "leasehold:record:",
            Self::Cell => "leasehold:cell:",
        }
    }

    fn hashed(self) -> &'static str {
        match self {
            Self::Record => "leasehold:record#",
            Self::Cell => "leasehold:cell#",
        }
    }

    /// The key of a name.
    pub(crate) fn key(self, name: &str) -> String {
        let mut key = self.written().to_owned();
        for byte in name.bytes() {
            if byte.is_ascii_graphic() && byte != b'%' {
                key.push(byte.into());
            } else {
                // Writing to a string cannot fail.
                let _ = write!(key, "%{byte:02X}");
            }
        }
        if key.len() - self.written().len() <= LONGEST {
            return key;
        }
        let mut key = self.hashed().to_owned();
        for byte in Sha256::digest(name.as_bytes()) {
            let _ = write!(key, "{byte:02x}");
        }
        key
    }

    /// The name of a key; `None` if it is no key of this sort.
    pub(crate) fn name(self, key: &str) -> Option<Called> {
        if key.starts_with(self.hashed()) {
            return Some(Called::Hashed);
        }
        let written = decoded(key.strip_prefix(self.written())?)?;
        Some(Called::Written(written))
    }
}

/// What a key says of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    Written(String),
    /// The item says it.
    Hashed,
}

/// Text with every `%XX` replaced by what it stands for; `None` if that is no text.
pub(crate) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        rest = more;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, more) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = more;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, prop_assert_eq, prop_assert_ne, proptest, test_runner::Config};

    use super::*;

    proptest! {
        #![proptest_config(Config { cases: 1000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn every_name_has_a_key_that_memcached_takes(name in ".{1,300}") {
            for sort in [Sort::Record, Sort::Cell] {
                let key = sort.key(&name);
                prop_assert!(key.len() <= 250 && key.bytes().all(|byte| byte.is_ascii_graphic()), "{key}");
                match sort.name(&key) {
                    Some(Called::Written(read)) => prop_assert_eq!(&read, &name),
                    Some(Called::Hashed) => prop_assert!(name.len() * 3 > LONGEST),
                    None => prop_assert!(false, "{key} is not read back"),
                }
            }
        }

        #[test]
        fn two_names_have_two_keys(one in "[a%# 锁]{1,80}", other in "[a%# 锁]{1,80}") {
            if one != other {
                prop_assert_ne!(Sort::Record.key(&one), Sort::Record.key(&other));
            }
            prop_assert_ne!(Sort::Record.key(&one), Sort::Cell.key(&one));
        }
    }
}
