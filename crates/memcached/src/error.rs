//! What can go wrong on the way to memcached and back, and what it means to us. Nowhere else is it translated.
//!
//! The question is always the same: did the request take effect? A request that only reads has none, and one that was
//! never sent whole has none either, since memcached acts on whole requests. A write without an answer may have been done.

use std::io;

use leasehold_core::{Error, ErrorKind, Operation};

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum Fault {
    /// There is no connection to be had.
    Unreachable(io::Error),
    /// The connection broke, or the server was silent for too long, after the request was sent.
    Broken(io::Error),
    /// The server refused the request, by this line.
    Refused(String),
    /// The server did not answer as memcached does.
    Garbled(String),
}

impl Fault {
    /// What it means for a request that changes nothing.
    pub(crate) fn of_read(self) -> Error {
        match self {
            Self::Broken(error) => {
                let message = "memcached did not answer; is it up, and the network?";
                Error::new(ErrorKind::Unavailable, Operation::Inspect, message).because(error)
            }
            other => other.of_write(),
        }
    }

    /// What it means for a request that may have changed something.
    pub(crate) fn of_write(self) -> Error {
        match self {
            Self::Unreachable(error) => {
                let message = "memcached cannot be reached; is it up, and the address right?";
                Error::new(ErrorKind::Unavailable, Operation::Inspect, message).because(error)
            }
            Self::Broken(error) => {
                let message = "memcached did not answer, so this may or may not have happened";
                Error::new(ErrorKind::Indeterminate, Operation::Inspect, message).because(error)
            }
            Self::Refused(line) => refused(&line),
            Self::Garbled(line) => {
                let message = format!("this is no memcached, or one older than 1.6: it answered {line:?}");
                Error::new(ErrorKind::Internal, Operation::Inspect, message)
            }
        }
    }
}

/// The table: memcached's refusals, and what they are to our users. A write that it has no room for was not applied, but
/// what was there before may be gone all the same.
fn refused(line: &str) -> Error {
    let (kind, message) = match line {
        _ if line.contains("unauthenticated") || line.contains("authentication failure") => (
            ErrorKind::Denied,
            "memcached does not accept our user and password; give them in the store URL".into(),
        ),
        _ if line.contains("out of memory") => {
            (ErrorKind::Indeterminate, "memcached is out of memory; give it more (-m)".into())
        }
        _ if line.contains("too large") => {
            (ErrorKind::Indeterminate, "too many hold or wait for this name for one item of memcached".into())
        }
        _ => (ErrorKind::Internal, format!("memcached refused: {line}")),
    };
    Error::new(kind, Operation::Inspect, message)
}

/// The store was closed by its own user.
pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Closed, Operation::Inspect, "this store was closed; open it again")
}

/// An item that is none of ours.
pub(crate) fn foreign(key: &str) -> Error {
    let message = format!("the item {key:?} is not of ours; was the name used by another program?");
    Error::new(ErrorKind::Internal, Operation::Inspect, message)
}

/// A server that was told not to count the writes of an item.
pub(crate) fn without_versions() -> Error {
    let message = "this memcached does not compare and set; start it without -C (--disable-cas)";
    Error::config(Operation::Inspect, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_write_without_an_answer_is_unknown() {
        let broken = || Fault::Broken(io::ErrorKind::TimedOut.into());
        assert_eq!(broken().of_read().kind(), ErrorKind::Unavailable);
        assert_eq!(broken().of_write().kind(), ErrorKind::Indeterminate);
        let unreachable = || Fault::Unreachable(io::ErrorKind::ConnectionRefused.into());
        assert_eq!(unreachable().of_write().kind(), ErrorKind::Unavailable);
    }

    #[test]
    fn refusals_have_kinds_of_their_own() {
        for (line, kind) in [
            ("CLIENT_ERROR unauthenticated", ErrorKind::Denied),
            ("CLIENT_ERROR authentication failure", ErrorKind::Denied),
            ("SERVER_ERROR out of memory storing object", ErrorKind::Indeterminate),
            ("SERVER_ERROR object too large for cache", ErrorKind::Indeterminate),
            ("CLIENT_ERROR bad command line format", ErrorKind::Internal),
        ] {
            assert_eq!(Fault::Refused(line.to_owned()).of_write().kind(), kind, "{line}");
        }
    }
}
