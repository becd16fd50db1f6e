//! The one map from what ZooKeeper and its client say to our errors.
//!
//! | what came | took effect | kind |
//! |---|---|---|
//! | no connection could be made | no | `Unavailable` |
//! | not authorized, authentication failed, bad ACL | no | `Denied` |
//! | read-only server, throttled, quota exceeded | no | `Unavailable` |
//! | a path or an argument it cannot take | no | `Config` |
//! | an operation it does not know | no | `Unsupported` |
//! | no node, node exists, bad version where it makes no sense | no | `Internal` |
//! | connection lost, session over, no answer in time | unknown | `Indeterminate` |

use leasehold_core::{Error, ErrorKind, Operation};
use zookeeper_client::Error as ZkError;

/// Why a request has no answer that could be used.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The server refused it, or the connection ended under it.
    Said(ZkError),
    /// No answer in time: it may still be carried out.
    Silent,
    /// It was not sent.
    NotSent(Error),
}

impl Fault {
    pub(crate) fn is_no_node(&self) -> bool {
        matches!(self, Self::Said(ZkError::NoNode))
    }

    pub(crate) fn is_node_exists(&self) -> bool {
        matches!(self, Self::Said(ZkError::NodeExists))
    }

    pub(crate) fn is_bad_version(&self) -> bool {
        matches!(self, Self::Said(ZkError::BadVersion))
    }

    /// Whether the request may have been carried out.
    pub(crate) fn is_unknown(&self) -> bool {
        match self {
            Self::Silent => true,
            Self::NotSent(_) => false,
            Self::Said(error) => kind(error) == ErrorKind::Indeterminate,
        }
    }

    /// As our error. The caller says what was being done.
    pub(crate) fn into_error(self, operation: Operation) -> Error {
        match self {
            Self::NotSent(error) => error.during(operation),
            Self::Silent => {
                let message = "no answer in time; whether the request took effect is not known";
                Error::new(ErrorKind::Indeterminate, operation, message)
            }
            Self::Said(error) => {
                let kind = kind(&error);
                Error::new(kind, operation, message(kind)).because(error.to_string())
            }
        }
    }
}

impl From<ZkError> for Fault {
    fn from(error: ZkError) -> Self {
        Self::Said(error)
    }
}

/// Nothing, where there is no such node.
pub(crate) fn or_none<T: Default>(answer: Result<T, Fault>) -> Result<T, Fault> {
    match answer {
        Err(fault) if fault.is_no_node() => Ok(T::default()),
        answer => answer,
    }
}

/// Connecting has no effect that could be unknown.
pub(crate) fn not_connected(error: &ZkError) -> Error {
    let (kind, message) = match kind(error) {
        ErrorKind::Denied => (ErrorKind::Denied, message(ErrorKind::Denied)),
        ErrorKind::Config => (ErrorKind::Config, message(ErrorKind::Config)),
        _ => (ErrorKind::Unavailable, "no server of the ensemble can be reached, or none has a quorum"),
    };
    Error::new(kind, Operation::Connect, message).because(error.to_string())
}

fn kind(error: &ZkError) -> ErrorKind {
    match error {
        ZkError::NoAuth | ZkError::AuthFailed | ZkError::InvalidAcl => ErrorKind::Denied,
        ZkError::NotReadOnly | ZkError::Throttled | ZkError::QuotaExceeded | ZkError::NoHosts => {
            ErrorKind::Unavailable
        }
        ZkError::BadArguments(_) => ErrorKind::Config,
        ZkError::Unimplemented => ErrorKind::Unsupported,
        ZkError::NoNode
        | ZkError::NodeExists
        | ZkError::BadVersion
        | ZkError::NotEmpty
        | ZkError::NoChildrenForEphemerals
        | ZkError::NoWatcher
        | ZkError::MarshallingError
        | ZkError::UnexpectedErrorCode(_) => ErrorKind::Internal,
        // A connection that ends, however it says so, leaves open what became of the requests on it.
        _ => ErrorKind::Indeterminate,
    }
}

fn message(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Denied => "the server denies this; check user, password and the ACLs of the path",
        ErrorKind::Unavailable => "the server cannot serve this now; try again",
        ErrorKind::Config => "the server cannot take this; check the path and the name",
        ErrorKind::Unsupported => "the server is too old for this; ZooKeeper 3.5 or newer is needed",
        ErrorKind::Indeterminate => {
            "the connection or the session ended; whether the request took effect is not known"
        }
        _ => "the server gave an error that makes no sense here",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_server_refused_is_known_to_have_failed() {
        for (error, kind) in [
            (ZkError::NoAuth, ErrorKind::Denied),
            (ZkError::NotReadOnly, ErrorKind::Unavailable),
            (ZkError::Unimplemented, ErrorKind::Unsupported),
            (ZkError::NoNode, ErrorKind::Internal),
            (ZkError::ConnectionLoss, ErrorKind::Indeterminate),
            (ZkError::SessionExpired, ErrorKind::Indeterminate),
            (ZkError::UnexpectedError("x".to_owned()), ErrorKind::Indeterminate),
        ] {
            let unknown = kind == ErrorKind::Indeterminate;
            assert_eq!(Fault::from(error.clone()).is_unknown(), unknown, "{error}");
            assert_eq!(Fault::from(error).into_error(Operation::Acquire).kind(), kind);
        }
        assert!(Fault::Silent.is_unknown());
    }
}
