//! Identity: who a client is, and which acquisition a trace in a store belongs to.
//!
//! Ids are random per client and counted within it, never taken from a thread, a task or a host. They exist
//! before anything is sent, so every trace a request can leave in a store bears one (contract C1). The text form
//! is `CLIENT:SERIAL`, the shape Redisson gives its holder fields.

use std::{
    fmt,
    str::FromStr,
    sync::atomic::{AtomicU64, Ordering},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, Operation};

/// Letters of a client's text form.
const CLIENT: usize = 36;

/// A client: 128 random bits, made once when the client is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(u128);

impl ClientId {
    /// A fresh random id.
    ///
    /// # Panics
    /// If the operating system has no randomness to give; nothing that needs unique ids can go on without.
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        Self(u128::from_le_bytes(bytes))
    }

    fn letters(self) -> [u8; CLIENT] {
        let mut letters = [b'-'; CLIENT];
        let mut left = self.0;
        for (at, letter) in letters.iter_mut().enumerate().rev() {
            if !matches!(at, 8 | 13 | 18 | 23) {
                *letter = b"0123456789abcdef"[(left & 15) as usize];
                left >>= 4;
            }
        }
        letters
    }
}

/// One acquisition: the client that made it and its number within that client.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClaimId {
    client: ClientId,
    serial: u64,
}

impl ClaimId {
    /// The client that made this acquisition.
    pub fn client(&self) -> ClientId {
        self.client
    }

    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }
}

/// Numbers a client's acquisitions.
#[derive(Debug)]
pub(crate) struct ClaimIds {
    client: ClientId,
    next: AtomicU64,
}

impl ClaimIds {
    pub(crate) fn new(client: ClientId) -> Self {
        Self { client, next: AtomicU64::new(1) }
    }

    pub(crate) fn next(&self) -> ClaimId {
        ClaimId { client: self.client, serial: self.next.fetch_add(1, Ordering::Relaxed) }
    }
}

/// Written as a UUID is (8-4-4-4-12), because Redisson writes its own that way.
impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ascii(&self.letters())?)
    }
}

/// Written in one piece: every request has one in it, and each piece would be one more growth of its text.
impl fmt::Display for ClaimId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut letters = [b':'; CLIENT + 1 + 20];
        letters[..CLIENT].copy_from_slice(&self.client.letters());
        let (mut end, mut power) = (CLIENT + 1, 1);
        while self.serial / power >= 10 {
            power *= 10;
        }
        while power > 0 {
            letters[end] = b'0' + (self.serial / power % 10) as u8;
            (end, power) = (end + 1, power / 10);
        }
        f.write_str(ascii(&letters[..end])?)
    }
}

fn ascii(letters: &[u8]) -> Result<&str, fmt::Error> {
    std::str::from_utf8(letters).map_err(|_| fmt::Error)
}

impl fmt::Debug for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientId({self})")
    }
}

impl fmt::Debug for ClaimId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClaimId({self})")
    }
}

impl FromStr for ClientId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let lengths: Vec<usize> = text.split('-').map(str::len).collect();
        let digits: String = text.split('-').collect();
        if lengths == [8, 4, 4, 4, 12]
            && digits.bytes().all(|b| b.is_ascii_hexdigit())
            && let Ok(id) = u128::from_str_radix(&digits, 16)
        {
            return Ok(Self(id));
        }
        Err(Error::config(Operation::Parse, format!("{text:?} is not a client id")))
    }
}

impl FromStr for ClaimId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parsed = text.split_once(':').and_then(|(client, serial)| {
            let serial = serial.bytes().all(|b| b.is_ascii_digit()).then(|| serial.parse().ok())??;
            Some(Self { client: client.parse().ok()?, serial })
        });
        parsed.ok_or_else(|| {
            Error::config(Operation::Parse, format!("{text:?} is not an id; copy it from `leasehold ls`"))
        })
    }
}

macro_rules! serialize_as_text {
    ($($id:ty),*) => {$(
        impl Serialize for $id {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $id {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}
serialize_as_text!(ClientId, ClaimId, crate::primitives::Id);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_survive_their_text_form() {
        let id = ClaimIds::new(ClientId::random()).next();
        assert_eq!(id.to_string().parse::<ClaimId>().unwrap(), id);
    }

    #[test]
    fn texts_are_those_of_a_uuid_and_a_number() {
        let client = ClientId(0x0123_4567_89ab_cdef_0011_2233_4455_66ff);
        let text = |serial| ClaimId { client, serial }.to_string();
        assert_eq!(text(0), "01234567-89ab-cdef-0011-2233445566ff:0");
        assert_eq!(text(10), "01234567-89ab-cdef-0011-2233445566ff:10");
        assert_eq!(text(907), "01234567-89ab-cdef-0011-2233445566ff:907");
        assert_eq!(text(u64::MAX), "01234567-89ab-cdef-0011-2233445566ff:18446744073709551615");
        assert_eq!(ClientId(0).to_string(), "00000000-0000-0000-0000-000000000000");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", ":", "1:2", "x:1", "00000000-0000-0000-0000-00000000000:1", "é:1", "+1:+1"] {
            assert!(text.parse::<ClaimId>().is_err(), "{text:?}");
        }
        let plus = format!("{}:+1", ClientId::random());
        assert!(plus.parse::<ClaimId>().is_err());
    }
}
