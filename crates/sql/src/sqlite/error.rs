//! What SQLite's and the file system's errors mean to us. Nowhere else are they translated.
//!
//! The question is always the same: did the transaction take effect? Before COMMIT the answer is no, whatever went
//! wrong, because the transaction is rolled back. During COMMIT a failed write or sync leaves it open: the pages may
//! be in the log, and a later recovery may find them there.

use std::{borrow::Cow, io};

use leasehold_core::{Error, ErrorKind, Operation};
use rusqlite::{ErrorCode, ffi};

/// Why one try at a transaction came to nothing.
#[derive(Debug)]
pub(super) enum Failure {
    /// Another connection was in the way. Trying again is worth it; nothing was done.
    Busy,
    /// Trying again is not ours to decide.
    Final(Error),
}

/// The result of one try.
pub(super) type Tried<T> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

/// An error anywhere but in COMMIT: the transaction took no effect.
impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(code) if is_busy(code) => Self::Busy,
            code => {
                let (kind, message) =
                    meaning(code, error.sqlite_error().map_or(0, |error| error.extended_code));
                Self::Final(Error::new(kind, Operation::Inspect, message).because(error))
            }
        }
    }
}

/// An error in COMMIT. A full disk or a busy database refuse before the commit is in the log; of anything else we
/// cannot know.
pub(super) fn commit_failed(error: rusqlite::Error) -> Failure {
    match error.sqlite_error_code() {
        Some(code) if is_busy(code) || code == ErrorCode::DiskFull => error.into(),
        _ => {
            let message = "the database failed while committing, so this may or may not have happened";
            Failure::Final(Error::new(ErrorKind::Indeterminate, Operation::Inspect, message).because(error))
        }
    }
}

/// Whether there was no room on the disk, or may have been none: a quota and the shared memory have codes of their own.
pub(super) fn lacks_room(error: &Error) -> bool {
    let cause = error.cause().and_then(|cause| cause.downcast_ref::<rusqlite::Error>());
    cause.and_then(rusqlite::Error::sqlite_error).is_some_and(|cause| {
        use ffi::{SQLITE_IOERR_SHMMAP, SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_WRITE};
        let rooms = [SQLITE_IOERR_WRITE, SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_SHMMAP, SQLITE_IOERR_SHMOPEN];
        cause.code == ErrorCode::DiskFull || rooms.contains(&cause.extended_code)
    })
}

/// Other connections were in the way. The locking protocol fails when they were so many times in a row.
fn is_busy(code: ErrorCode) -> bool {
    use ErrorCode::{DatabaseBusy, DatabaseLocked, FileLockingProtocolFailed};
    matches!(code, DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed)
}

/// The table: SQLite's codes, and what they are to our users.
fn meaning(code: Option<ErrorCode>, extended: i32) -> (ErrorKind, &'static str) {
    use ErrorKind::{Denied, Internal, Unavailable};
    match code {
        Some(ErrorCode::DiskFull) => (Unavailable, "the disk is full; free some space"),
        Some(ErrorCode::SystemIoFailure) if extended == ffi::SQLITE_IOERR_SHMSIZE => {
            (Unavailable, "the disk is full; free some space")
        }
        Some(ErrorCode::OutOfMemory) => (Unavailable, "the machine is out of memory"),
        Some(ErrorCode::SystemIoFailure) => {
            (Unavailable, "the file could not be read or written; check the disk")
        }
        Some(ErrorCode::FileLockingProtocolFailed) => {
            (Unavailable, "the file could not be locked; try again later")
        }
        Some(ErrorCode::CannotOpen) if extended == ffi::SQLITE_CANTOPEN_SYMLINK => {
            (Denied, "the path leads through a symbolic link; give the path of the file itself")
        }
        Some(ErrorCode::CannotOpen) => {
            (Unavailable, "the file cannot be opened; check its folder and its rights")
        }
        Some(ErrorCode::ReadOnly) => {
            (Denied, "the file is read-only for us; check who owns it and its rights")
        }
        Some(ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied) => {
            (Denied, "we have no right to this file; check who owns it and its rights")
        }
        Some(ErrorCode::NotADatabase) => (Internal, "this file is not an SQLite database; give another path"),
        Some(ErrorCode::DatabaseCorrupt) => (
            Internal,
            "the database is damaged; stop everything that uses it, move it away and begin a new one",
        ),
        _ => (Internal, "the database does not answer as expected; did another program change its tables?"),
    }
}

/// An error of the file system, outside SQLite.
pub(super) fn from_io(error: io::Error, message: impl Into<Cow<'static, str>>) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Denied,
        io::ErrorKind::InvalidInput | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
            ErrorKind::Config
        }
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, Operation::Connect, message).because(error)
}

/// The store was closed by its own user.
pub(super) fn closed() -> Error {
    Error::new(ErrorKind::Closed, Operation::Inspect, "this store was closed; open it again")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sqlite(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
    }

    fn kind(failure: Failure) -> Option<ErrorKind> {
        match failure {
            Failure::Busy => None,
            Failure::Final(error) => Some(error.kind()),
        }
    }

    #[test]
    fn a_busy_database_is_worth_another_try_wherever_it_says_so() {
        for code in
            [ffi::SQLITE_BUSY, ffi::SQLITE_BUSY_SNAPSHOT, ffi::SQLITE_BUSY_RECOVERY, ffi::SQLITE_PROTOCOL]
        {
            assert_eq!(kind(sqlite(code).into()), None);
            assert_eq!(kind(commit_failed(sqlite(code))), None);
        }
    }

    #[test]
    fn a_failed_write_is_without_effect_before_commit_and_unknown_within() {
        for code in [ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_FSYNC] {
            assert_eq!(kind(sqlite(code).into()), Some(ErrorKind::Unavailable));
            assert_eq!(kind(commit_failed(sqlite(code))), Some(ErrorKind::Indeterminate));
        }
    }

    #[test]
    fn a_full_disk_is_without_effect_even_in_commit() {
        assert_eq!(kind(sqlite(ffi::SQLITE_FULL).into()), Some(ErrorKind::Unavailable));
        assert_eq!(kind(commit_failed(sqlite(ffi::SQLITE_FULL))), Some(ErrorKind::Unavailable));
    }

    #[test]
    fn rights_and_damage_have_kinds_of_their_own() {
        for code in [ffi::SQLITE_READONLY, ffi::SQLITE_PERM, ffi::SQLITE_CANTOPEN_SYMLINK] {
            assert_eq!(kind(sqlite(code).into()), Some(ErrorKind::Denied));
        }
        for code in [ffi::SQLITE_NOTADB, ffi::SQLITE_CORRUPT, ffi::SQLITE_ERROR] {
            assert_eq!(kind(sqlite(code).into()), Some(ErrorKind::Internal));
        }
    }
}
