//! What PostgreSQL's and its client's errors mean to us. Nowhere else are they translated.
//!
//! The question is always the same: did the statement take effect? What the server answers with an error it has rolled
//! back, but for one case: while it shuts down it may have committed before it says so. Only that, and silence, leave it
//! unknown.
//!
//! | what came | took effect | kind |
//! |---|---|---|
//! | no connection, refused, TLS failed | no | `Unavailable` |
//! | wrong password, no such user, no right to connect or to a table | no | `Denied` |
//! | no such database | no | `Config` |
//! | deadlock, serialization failure, a wait for a lock too long | no | tried again, then `Unavailable` |
//! | read-only: a standby | no | `Unavailable` |
//! | out of connections, memory or disk; starting up | no | `Unavailable` |
//! | any other error answer | no | `Internal` |
//! | shutting down, connection lost after sending | unknown | `Indeterminate` |

use leasehold_core::{Error, ErrorKind, Operation};
use tokio_postgres::error::SqlState;

use crate::server::Failure;

/// An error of a statement that was sent.
#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
pub(super) fn failed(error: tokio_postgres::Error) -> Failure {
    let Some(code) = error.code().cloned() else {
        let message = "the connection failed before the answer; whether the request took effect is not known";
        return Error::new(ErrorKind::Indeterminate, Operation::Inspect, message)
            .because(said(&error))
            .into();
    };
    let (kind, message) = meaning(&code);
    let ours = Error::new(kind, Operation::Inspect, message).because(said(&error));
    if gives_way(&code) { Failure::GaveWay(ours) } else { Failure::Final(ours) }
}

/// An error of a connection that could not be made: nothing took effect.
pub(super) fn not_connected(error: &tokio_postgres::Error) -> Failure {
    let (kind, message) = match error.code() {
        Some(code) => match meaning(code) {
            (ErrorKind::Indeterminate, _) => (ErrorKind::Unavailable, "the server is shutting down"),
            (ErrorKind::Internal, _) => (ErrorKind::Unavailable, "the server lets nobody in"),
            meaning => meaning,
        },
        None if says(error, "password") => {
            (ErrorKind::Denied, "the server wants a password; put it into the store URL")
        }
        None => (ErrorKind::Unavailable, "the server cannot be reached; check address and network"),
    };
    Error::new(kind, Operation::Connect, message).because(said(error)).into()
}

/// Nobody answered when a connection was asked for.
pub(super) fn not_connected_in_time() -> Failure {
    let message = "the server did not let us connect in time; check address and network";
    Error::new(ErrorKind::Unavailable, Operation::Connect, message).into()
}

/// Whether the table is not there.
pub(super) fn is_missing(failure: &Failure) -> bool {
    matches!(failure, Failure::Final(error) if error.kind() == ErrorKind::Internal && mentions(error, "42P01"))
}

/// Whether a table is there without one of its columns.
pub(super) fn lacks_column(failure: &Failure) -> bool {
    matches!(failure, Failure::Final(error) if mentions(error, "42703"))
}

/// Whether we lack a right.
pub(super) fn is_denied(failure: &Failure) -> bool {
    matches!(failure, Failure::Final(error) if error.kind() == ErrorKind::Denied)
}

fn mentions(error: &Error, code: &str) -> bool {
    error.cause().is_some_and(|cause| cause.to_string().contains(code))
}

/// What the server said, with its code, on one line.
fn said(error: &tokio_postgres::Error) -> String {
    if let Some(answer) = error.as_db_error() {
        return format!("{}, {}", answer.message(), answer.code().code());
    }
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.filter(|_| !error.to_string().contains(':')).unwrap_or_default())
}

fn says(error: &tokio_postgres::Error, word: &str) -> bool {
    said(error).contains(word)
}

/// The server chose us; it is rolled back and worth another try.
fn gives_way(code: &SqlState) -> bool {
    [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE, SqlState::LOCK_NOT_AVAILABLE]
        .contains(code)
}

/// The table: PostgreSQL's codes, and what they are to our users.
fn meaning(code: &SqlState) -> (ErrorKind, &'static str) {
    use ErrorKind::{Config, Denied, Indeterminate, Internal, Unavailable};
    match code.code() {
        "28000" | "28P01" => {
            (Denied, "the server refuses user or password; check the store URL and pg_hba.conf")
        }
        "42501" => {
            (Denied, "we have no right to the tables of locks; see the SQL that leasehold doctor prints")
        }
        "3D000" => (Config, "there is no such database; create it, or name another in the store URL"),
        "25006" => (Unavailable, "the server is read-only; connect to the primary"),
        "40001" | "40P01" | "55P03" => (Unavailable, "others were in the way again and again; try again"),
        "53300" => (Unavailable, "the server has no connection left; raise max_connections or use fewer"),
        "53100" => (Unavailable, "the server's disk is full; free some space"),
        "57014" => (Unavailable, "the server cancelled the statement; is statement_timeout too short?"),
        "57P03" => (Unavailable, "the server is starting up or shutting down; try again"),
        "57P01" | "57P02" | "57P04" | "57P05" => {
            (Indeterminate, "the server ended the connection; whether the request took effect is not known")
        }
        code if code.starts_with("08") => {
            (Indeterminate, "the connection failed; whether the request took effect is not known")
        }
        code if code.starts_with("53") => (Unavailable, "the server is short of something; see its log"),
        "42P01" => (Internal, "a table of locks is missing; open the store again to create it"),
        _ => (Internal, "the server does not answer as expected; did another program change our tables?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_kinds_the_table_says() {
        let kind = |code: &str| meaning(&SqlState::from_code(code)).0;
        assert_eq!(kind("28P01"), ErrorKind::Denied);
        assert_eq!(kind("42501"), ErrorKind::Denied);
        assert_eq!(kind("25006"), ErrorKind::Unavailable);
        assert_eq!(kind("57P01"), ErrorKind::Indeterminate);
        assert_eq!(kind("57P03"), ErrorKind::Unavailable);
        assert_eq!(kind("22P02"), ErrorKind::Internal);
    }

    #[test]
    fn only_what_was_surely_rolled_back_is_tried_again() {
        for (code, again) in
            [("40001", true), ("40P01", true), ("55P03", true), ("57P01", false), ("53300", false)]
        {
            assert_eq!(gives_way(&SqlState::from_code(code)), again, "{code}");
        }
    }
}
