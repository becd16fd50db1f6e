//! What MySQL's and its client's errors mean to us. Nowhere else are they translated.
//!
//! What the server answers with an error it has rolled back; only silence, and a server that is shutting down, leave open
//! whether a statement took effect.
//!
//! | what came | took effect | kind |
//! |---|---|---|
//! | no connection, refused, TLS failed | no | `Unavailable` |
//! | wrong password, no right to the database or a table | no | `Denied` |
//! | no such database | no | `Config` |
//! | deadlock, a wait for a lock too long, the row changed meanwhile | no | tried again, then `Unavailable` |
//! | read-only: a replica | no | `Unavailable` |
//! | out of connections, memory or disk | no | `Unavailable` |
//! | any other error answer | no | `Internal` |
//! | shutting down, connection lost after sending | unknown | `Indeterminate` |

use leasehold_core::{Error, ErrorKind, Operation};
use mysql_async::DriverError;

use crate::server::Failure;

/// An error of the first statement of those that were sent.
pub(super) fn failed(error: &mysql_async::Error) -> Failure {
    let mysql_async::Error::Server(answer) = error else { return unfinished(error) };
    let (kind, message) = meaning(answer.code);
    let ours = Error::new(kind, Operation::Inspect, message).because(said(error));
    if gives_way(answer.code) { Failure::GaveWay(ours) } else { Failure::Final(ours) }
}

/// An error after a statement that may have taken effect.
pub(super) fn unfinished(error: &mysql_async::Error) -> Failure {
    let message = "the connection failed before the answer; whether the request took effect is not known";
    Error::new(ErrorKind::Indeterminate, Operation::Inspect, message).because(said(error)).into()
}

/// An error of a connection that could not be made: nothing took effect.
pub(super) fn not_connected(error: &mysql_async::Error) -> Failure {
    let (kind, message) = match error {
        mysql_async::Error::Server(answer) => match meaning(answer.code) {
            (ErrorKind::Indeterminate | ErrorKind::Internal, _) => {
                (ErrorKind::Unavailable, "the server lets nobody in")
            }
            meaning => meaning,
        },
        mysql_async::Error::Driver(way) if is_way_to_log_in(way) => (
            ErrorKind::Denied,
            "the server wants another way to log in than we have, as MySQL says of users it does not know; check user and \
             password in the store URL",
        ),
        _ => (ErrorKind::Unavailable, "the server cannot be reached; check address and network"),
    };
    Error::new(kind, Operation::Connect, message).because(said(error)).into()
}

/// Whether the server asked for the password in a way that the client does not know, or does not use because it shows it.
fn is_way_to_log_in(error: &DriverError) -> bool {
    use DriverError::{CleartextPluginDisabled, MysqlOldPasswordDisabled, UnknownAuthPlugin};
    matches!(error, UnknownAuthPlugin { .. } | CleartextPluginDisabled | MysqlOldPasswordDisabled)
}

/// Nobody answered when a connection was asked for.
pub(super) fn not_connected_in_time() -> Failure {
    let message = "the server did not let us connect in time; check address and network";
    Error::new(ErrorKind::Unavailable, Operation::Connect, message).into()
}

/// Whether a table is not there.
pub(super) fn is_missing(failure: &Failure) -> bool {
    matches!(failure, Failure::Final(error)
        if error.cause().is_some_and(|cause| cause.to_string().ends_with("1146")))
}

/// Whether a table is there without one of its columns.
pub(super) fn lacks_column(error: &Error) -> bool {
    error.cause().is_some_and(|cause| cause.to_string().ends_with(", 1054"))
}

/// Whether we lack a right to a table.
pub(super) fn lacks_rights(error: &Error) -> bool {
    let ends = |code: &str| error.cause().is_some_and(|cause| cause.to_string().ends_with(code));
    ends("1142") || ends("1143") || ends("1227")
}

/// What the server said, with its code, on one line.
fn said(error: &mysql_async::Error) -> String {
    match error {
        mysql_async::Error::Server(answer) => format!("{}, {}", answer.message, answer.code),
        other => other.to_string(),
    }
}

/// The server chose us; it is rolled back and worth another try.
fn gives_way(code: u16) -> bool {
    matches!(code, 1205 | 1213 | 1020 | 3572 | 3101 | 4031)
}

/// The connection is of no more use: the server has ended it, or is one that takes no writes any more.
pub(super) fn ends_connection(error: &mysql_async::Error) -> bool {
    match error {
        mysql_async::Error::Server(answer) => matches!(
            answer.code,
            1053 | 1077 | 1079 | 1080 | 1152 | 1184 | 1290 | 1792 | 1836 | 1927 | 3100 | 3169 | 4031
        ),
        _ => true,
    }
}

/// The table: MySQL's codes, and what they are to our users.
fn meaning(code: u16) -> (ErrorKind, &'static str) {
    use ErrorKind::{Config, Denied, Indeterminate, Internal, Unavailable};
    match code {
        1044 | 1045 | 1698 | 1130 | 1227 => {
            (Denied, "the server refuses user or password; check the store URL")
        }
        1142 | 1143 | 1370 => {
            (Denied, "we have no right to the tables of locks; see the SQL that leasehold doctor prints")
        }
        1049 => (Config, "there is no such database; create it, or name another in the store URL"),
        1290 | 1792 | 1836 | 3100 => (Unavailable, "the server is read-only; connect to the primary"),
        4031 => (Unavailable, "the server ended a connection that was idle for long; try again"),
        1205 | 1213 | 1020 | 3572 | 3101 => {
            (Unavailable, "others were in the way again and again; try again")
        }
        1040 | 1203 | 1226 => {
            (Unavailable, "the server has no connection left; raise max_connections or use fewer")
        }
        1021 | 1114 | 1037 | 1041 | 1038 => {
            (Unavailable, "the server is short of disk or memory; see its log")
        }
        1317 | 1028 | 3024 | 1969 => (Unavailable, "the server cancelled the statement; try again"),
        1053 | 1077 | 1079 | 1080 | 1152 | 1184 | 1927 | 3169 => {
            (Indeterminate, "the server ended the connection; whether the request took effect is not known")
        }
        1047 => (Unavailable, "this node is not part of a working cluster; see its log"),
        1146 => (Internal, "a table of locks is missing; open the store again to create it"),
        _ => (Internal, "the server does not answer as expected; did another program change our tables?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A user that MySQL does not know is asked for its password in a way that depends on its name.
    #[test]
    fn a_strange_way_to_log_in_is_a_refusal() {
        let way = DriverError::UnknownAuthPlugin { name: "sha256_password".to_owned() };
        assert_eq!(not_connected(&way.into()).into_error().kind(), ErrorKind::Denied);
        assert_eq!(
            not_connected(&DriverError::ConnectionClosed.into()).into_error().kind(),
            ErrorKind::Unavailable
        );
    }

    #[test]
    fn codes_have_the_kinds_the_table_says() {
        for (code, kind) in [
            (1045, ErrorKind::Denied),
            (1142, ErrorKind::Denied),
            (1049, ErrorKind::Config),
            (1290, ErrorKind::Unavailable),
            (1213, ErrorKind::Unavailable),
            (1053, ErrorKind::Indeterminate),
            (1064, ErrorKind::Internal),
        ] {
            assert_eq!(meaning(code).0, kind, "{code}");
        }
        assert!([1213, 1205, 3101, 4031].into_iter().all(gives_way) && !gives_way(1053) && !gives_way(1290));
    }
}
