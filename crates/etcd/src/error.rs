//! What can go wrong on the way to etcd and back, as our errors: the one place where the client library's and the server's
//! errors are told apart, with the question answered for each: not applied, or unknown?

use std::error::Error as StdError;

use leasehold_core::{Error, ErrorKind, Operation};
use tonic::{Code, ConnectError, Status};

/// Why a request was not answered as it should.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// It never left: there was no connection to send it on.
    NotSent(String),
    /// The server refused it; it did nothing.
    Refused(Refusal, String),
    /// It may or may not have taken effect.
    Unknown(String),
    /// The store was closed.
    Closed,
}

/// A server's refusals, as far as they differ to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The lease is over.
    NoLease,
    /// A lease of this id exists.
    LeaseExists,
    /// The token that proves who we are is not valid, or no more.
    Token,
    Credentials,
    Rights,
    TooLarge,
    /// No leader, no space, too much to do: may pass.
    NotNow,
    Other,
}

/// What the server says, and what that means. Its texts are part of its protocol: clients in Go tell errors apart by them.
const REFUSALS: [(&str, Refusal); 20] = [
    ("requested lease not found", Refusal::NoLease),
    ("lease already exists", Refusal::LeaseExists),
    ("invalid auth token", Refusal::Token),
    ("revision of auth store is old", Refusal::Token),
    ("authentication failed", Refusal::Credentials),
    ("authentication is not enabled", Refusal::Credentials),
    ("user name is empty", Refusal::Credentials),
    ("user name not found", Refusal::Credentials),
    ("permission denied", Refusal::Rights),
    ("request is too large", Refusal::TooLarge),
    ("too many operations in txn", Refusal::TooLarge),
    ("no leader", Refusal::NotNow),
    ("not leader", Refusal::NotNow),
    ("not capable", Refusal::NotNow),
    ("stopped", Refusal::NotNow),
    ("unhealthy cluster", Refusal::NotNow),
    ("database space exceeded", Refusal::NotNow),
    ("too many requests", Refusal::NotNow),
    ("rpc not supported for learner", Refusal::NotNow),
    ("corrupt cluster", Refusal::NotNow),
];

impl Fault {
    /// From what the client library says.
    pub(crate) fn of(status: &Status) -> Self {
        let text = status.message().to_owned();
        if never_connected(status) {
            return Self::NotSent(text);
        }
        let known = REFUSALS.iter().find(|(says, _)| text.contains(says)).map(|(_, refusal)| *refusal);
        match (known, status.code()) {
            (Some(refusal), _) => Self::Refused(refusal, text),
            (None, Code::Unauthenticated) => Self::Refused(Refusal::Token, text),
            (None, Code::PermissionDenied) => Self::Refused(Refusal::Rights, text),
            // A request that the server took apart and found wanting did nothing.
            (
                None,
                Code::InvalidArgument
                | Code::NotFound
                | Code::AlreadyExists
                | Code::FailedPrecondition
                | Code::OutOfRange
                | Code::Unimplemented,
            ) => Self::Refused(Refusal::Other, text),
            (None, Code::ResourceExhausted) => Self::Refused(Refusal::NotNow, text),
            // Timed out, leader changed, connection gone: it may have been proposed, and then it may yet be applied.
            _ => Self::Unknown(text),
        }
    }

    pub(crate) fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Refused(refusal, _) => Some(*refusal),
            _ => None,
        }
    }

    /// As our error. The caller says what was being done.
    pub(crate) fn into_error(self, operation: Operation) -> Error {
        let (kind, message, text) = match self {
            Self::NotSent(text) => (ErrorKind::Unavailable, "the server cannot be reached", text),
            Self::Unknown(text) => {
                (ErrorKind::Indeterminate, "whether the request took effect is not known", text)
            }
            Self::Closed => {
                return Error::new(ErrorKind::Closed, operation, "this store is closed; connect a new one");
            }
            Self::Refused(refusal, text) => {
                let (kind, message) = refusal.meaning();
                (kind, message, text)
            }
        };
        Error::new(kind, operation, message).because(text)
    }
}

impl Refusal {
    fn meaning(self) -> (ErrorKind, &'static str) {
        match self {
            Self::NoLease | Self::LeaseExists => {
                (ErrorKind::Unavailable, "the lease was over before it was used; try again")
            }
            Self::Token | Self::Credentials => {
                (ErrorKind::Denied, "the server does not accept these credentials; check user and password")
            }
            Self::Rights => {
                (ErrorKind::Denied, "the server denies this; the user needs readwrite on leasehold/")
            }
            Self::TooLarge => (ErrorKind::Config, "the request is larger than the server takes"),
            Self::NotNow => (ErrorKind::Unavailable, "the server cannot serve anybody now"),
            Self::Other => (ErrorKind::Internal, "the server gave an error"),
        }
    }
}

fn never_connected(status: &Status) -> bool {
    let mut source = status.source();
    while let Some(error) = source {
        if error.is::<ConnectError>() {
            return true;
        }
        source = error.source();
    }
    false
}

/// An answer that fits no question of ours.
pub(crate) fn misfit(operation: Operation, what: &str) -> Error {
    let message = format!("the server gave an answer that makes no sense: {what}");
    Error::new(ErrorKind::Internal, operation, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_did_nothing_and_silence_is_unknown() {
        for (code, text, kind) in [
            (Code::Unavailable, "etcdserver: no leader", ErrorKind::Unavailable),
            (Code::Unavailable, "etcdserver: leader changed", ErrorKind::Indeterminate),
            (Code::Unavailable, "etcdserver: request timed out", ErrorKind::Indeterminate),
            (Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded", ErrorKind::Unavailable),
            (Code::PermissionDenied, "etcdserver: permission denied", ErrorKind::Denied),
            (
                Code::InvalidArgument,
                "etcdserver: authentication failed, invalid user ID or password",
                ErrorKind::Denied,
            ),
            (Code::InvalidArgument, "etcdserver: request is too large", ErrorKind::Config),
            (Code::InvalidArgument, "etcdserver: duplicate key given in txn request", ErrorKind::Internal),
            (Code::Unknown, "h2 protocol error", ErrorKind::Indeterminate),
            (Code::Cancelled, "operation was canceled", ErrorKind::Indeterminate),
        ] {
            let error = Fault::of(&Status::new(code, text)).into_error(Operation::Acquire);
            assert_eq!(error.kind(), kind, "{text}");
        }
    }
}
