//! What the driver's errors mean to us. Nowhere else are they translated.
//!
//! The question is always the same: did the write take effect? A command that failed did nothing. A write that was not
//! confirmed by a majority is done on one member and may be undone by an election; a connection that broke, or a server
//! that stepped down in the middle, leaves it open. All these are unknown.

use leasehold_core::{Error, ErrorKind, Operation};
use mongodb::error::{self as driver, WriteFailure};

/// What a request may have done to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It only reads.
    None,
    /// It may change something.
    Write,
}

/// A document of this name was inserted by another at the same time: nothing was done, and trying again finds it.
pub(crate) const DUPLICATE: i32 = 11000;

/// The server does not know us, or does not let us.
const DENIED: [i32; 5] = [13, 18, 31, 33, 8000];

/// The server refused before it did anything: it is no primary, or could not get at the document.
const REFUSED: [i32; 5] = [10107, 13435, 13436, 112, 24];

/// The server went away from what it was doing: stepping down, shutting down, out of time.
const INTERRUPTED: [i32; 8] = [11600, 11601, 11602, 91, 189, 50, 262, 64];

/// Whether this is a duplicate key, in either of the shapes it comes in.
pub(crate) fn is_duplicate(error: &driver::Error) -> bool {
    match &*error.kind {
        driver::ErrorKind::Command(command) => command.code == DUPLICATE,
        driver::ErrorKind::Write(WriteFailure::WriteError(write)) => write.code == DUPLICATE,
        _ => false,
    }
}

/// The table: the driver's errors, and what they are to our users.
pub(crate) fn meaning(error: driver::Error, effect: Effect) -> Error {
    use driver::ErrorKind as Found;
    let unapplied = error.contains_label("NoWritesPerformed");
    let kind = match &*error.kind {
        _ if unapplied => ErrorKind::Unavailable,
        Found::Authentication { .. } => ErrorKind::Denied,
        Found::Command(command) => of_code(command.code),
        Found::Write(WriteFailure::WriteError(write)) => of_code(write.code),
        Found::Io(io) if io.kind() == std::io::ErrorKind::ConnectionRefused => ErrorKind::Unavailable,
        // Not confirmed by a majority, or a connection that broke, by itself or with all others to its server.
        Found::Write(_) | Found::Io(_) | Found::ConnectionPoolCleared { .. } => ErrorKind::Indeterminate,
        // Both are said before anything is sent.
        Found::ServerSelection { .. } | Found::DnsResolve { .. } => ErrorKind::Unavailable,
        Found::InvalidArgument { .. } | Found::InvalidTlsConfig { .. } => ErrorKind::Config,
        Found::IncompatibleServer { .. } => ErrorKind::Unsupported,
        Found::Shutdown => ErrorKind::Closed,
        _ => ErrorKind::Internal,
    };
    told(kind, effect, error)
}

/// The request took longer than we wait. It goes on by itself.
pub(crate) fn late(effect: Effect) -> Error {
    told(ErrorKind::Indeterminate, effect, "no answer in time")
}

fn of_code(code: i32) -> ErrorKind {
    match code {
        _ if DENIED.contains(&code) => ErrorKind::Denied,
        _ if REFUSED.contains(&code) => ErrorKind::Unavailable,
        _ if INTERRUPTED.contains(&code) => ErrorKind::Indeterminate,
        _ => ErrorKind::Internal,
    }
}

fn told(
    kind: ErrorKind,
    effect: Effect,
    cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Error {
    // What only reads and got no answer changed nothing.
    let is_harmless = kind == ErrorKind::Indeterminate && effect == Effect::None;
    let kind = if is_harmless { ErrorKind::Unavailable } else { kind };
    let message = match kind {
        ErrorKind::Denied => {
            "MongoDB does not accept our user, or does not let it read and write the collection"
        }
        ErrorKind::Unavailable => "MongoDB cannot serve us now; is it up, and has it a primary?",
        ErrorKind::Indeterminate => {
            "MongoDB did not confirm it by a majority, so this may or may not have happened"
        }
        ErrorKind::Config => "the driver cannot use this; check the store URL",
        ErrorKind::Unsupported => "this MongoDB is too old; 5.0 and later will do",
        ErrorKind::Closed => "this store was closed; open it again",
        _ => "MongoDB refused in a way that we did not expect",
    };
    Error::new(kind, Operation::Inspect, message).because(cause)
}

/// A document that is none of ours.
pub(crate) fn foreign(what: &str) -> Error {
    let message = format!("a document has no {what} of ours; is the collection used by another program?");
    Error::new(ErrorKind::Internal, Operation::Inspect, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_did_nothing_and_an_interruption_is_unknown() {
        for (code, kind) in [
            (13, ErrorKind::Denied),
            (18, ErrorKind::Denied),
            (10107, ErrorKind::Unavailable),
            (11602, ErrorKind::Indeterminate),
            (189, ErrorKind::Indeterminate),
            (9, ErrorKind::Internal),
        ] {
            assert_eq!(of_code(code), kind, "{code}");
        }
    }

    #[test]
    fn a_duplicate_key_is_known_in_both_shapes_and_nothing_else_is_taken_for_one() {
        let shapes = |code: i32| {
            let said = mongodb::bson::doc! { "code": code, "codeName": "", "errmsg": "E11000 duplicate key" };
            let command = mongodb::bson::deserialize_from_document(said.clone()).unwrap();
            let write = mongodb::bson::deserialize_from_document(said).unwrap();
            [driver::ErrorKind::Command(command), driver::ErrorKind::Write(WriteFailure::WriteError(write))]
        };
        assert!(shapes(DUPLICATE).map(driver::Error::from).iter().all(is_duplicate));
        assert!(!shapes(112).map(driver::Error::from).iter().any(is_duplicate));
    }

    #[test]
    fn what_only_reads_is_never_unknown() {
        let broken = || driver::Error::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert_eq!(meaning(broken(), Effect::Write).kind(), ErrorKind::Indeterminate);
        assert_eq!(meaning(broken(), Effect::None).kind(), ErrorKind::Unavailable);
        assert_eq!(late(Effect::None).kind(), ErrorKind::Unavailable);
        assert_eq!(late(Effect::Write).kind(), ErrorKind::Indeterminate);
    }
}
