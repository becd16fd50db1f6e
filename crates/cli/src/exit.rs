//! How the program ends: one status for each way, and what is said on the way out.
//!
//! The numbers are a promise to scripts. A child's own code passes through unchanged, so a child may return one of
//! ours; `run --status-file` says which it was.

use std::{fmt, process::ExitCode};

use leasehold::{ErrorKind, Operation, backend::Loss};

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All went well.
    Success,
    /// `doctor` found something that makes another failure worse; operations of `bench` failed.
    Warned,
    /// `doctor` found something that breaks locks by itself; `bench` saw a broken one.
    Endangered,
    /// The child ended by itself, with this code.
    Child(u8),
    /// The child, or the wait for its lock, was ended by this signal.
    Signal(i32),
    /// The command line makes no sense.
    Usage,
    /// The store cannot be reached.
    Unavailable,
    /// Somebody else holds the lock; `run -E` chooses the code.
    Busy(u8),
    /// The lock was lost while the child ran, and the child was stopped.
    Lost,
    /// The store does not let us.
    Denied,
    /// The configuration makes no sense.
    Config,
    /// An operator broke the lock while the child ran, and the child was stopped.
    Broken,
    /// The child ran for longer than `--max-run`, and was stopped.
    MaxRun,
    /// Something of ours failed.
    Internal,
    /// The command was found and cannot be run.
    NotExecutable,
    /// The command was not found.
    NotFound,
}

impl Exit {
    /// The code when somebody else holds the lock, unless chosen otherwise.
    pub(crate) const BUSY: u8 = 75;

    /// The number the shell sees.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Warned => 1,
            Self::Endangered => 2,
            Self::Child(code) | Self::Busy(code) => code,
            Self::Signal(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
            Self::Usage => 64,
            Self::Unavailable => 69,
            Self::Lost => 76,
            Self::Denied => 77,
            Self::Config => 78,
            Self::Broken => 79,
            Self::MaxRun => 124,
            Self::Internal => 125,
            Self::NotExecutable => 126,
            Self::NotFound => 127,
        }
    }

    /// Whether trying again later does not help either.
    pub(crate) fn is_hopeless(self) -> bool {
        matches!(self, Self::Usage | Self::Config | Self::Denied | Self::Internal)
    }

    /// The status for a lock lost in this way.
    pub(crate) fn of_loss(loss: &Loss) -> Self {
        match loss {
            Loss::Broken(_) => Self::Broken,
            _ => Self::Lost,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// An end that has to be explained.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    /// The command line makes no sense, for a reason that only shows once it is read as a whole.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::new(Exit::Config, message)
    }

    pub(crate) fn internal(doing: &str, error: impl fmt::Display) -> Self {
        Self::new(Exit::Internal, format!("{doing}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<leasehold::Error> for Failure {
    fn from(error: leasehold::Error) -> Self {
        Self::new(status(&error), error.to_string())
    }
}

fn status(error: &leasehold::Error) -> Exit {
    match error.kind() {
        // A store that cannot be made sense of is configured; names, ids and times are typed.
        ErrorKind::Config if error.operation() == Operation::Connect => Exit::Config,
        ErrorKind::Config | ErrorKind::Unsupported | ErrorKind::Conflict | ErrorKind::WouldDeadlock => {
            Exit::Usage
        }
        ErrorKind::Busy => Exit::Busy(Exit::BUSY),
        ErrorKind::Lost => error.loss().map_or(Exit::Lost, Exit::of_loss),
        ErrorKind::Indeterminate | ErrorKind::Unavailable | ErrorKind::Capacity => Exit::Unavailable,
        ErrorKind::Denied => Exit::Denied,
        _ => Exit::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_documented_ones() {
        let codes = [
            (Exit::Success, 0),
            (Exit::Warned, 1),
            (Exit::Endangered, 2),
            (Exit::Child(7), 7),
            (Exit::Signal(15), 143),
            (Exit::Usage, 64),
            (Exit::Unavailable, 69),
            (Exit::Busy(Exit::BUSY), 75),
            (Exit::Busy(1), 1),
            (Exit::Lost, 76),
            (Exit::Denied, 77),
            (Exit::Config, 78),
            (Exit::Broken, 79),
            (Exit::MaxRun, 124),
            (Exit::Internal, 125),
            (Exit::NotExecutable, 126),
            (Exit::NotFound, 127),
        ];
        for (exit, code) in codes {
            assert_eq!(exit.code(), code, "{exit:?}");
        }
    }

    #[test]
    fn each_kind_of_error_has_its_status() {
        let error = |kind| leasehold::Error::new(kind, Operation::Acquire, "no");
        let statuses = [
            (ErrorKind::Config, Exit::Usage),
            (ErrorKind::Busy, Exit::Busy(75)),
            (ErrorKind::Lost, Exit::Lost),
            (ErrorKind::Indeterminate, Exit::Unavailable),
            (ErrorKind::Unavailable, Exit::Unavailable),
            (ErrorKind::Capacity, Exit::Unavailable),
            (ErrorKind::Denied, Exit::Denied),
            (ErrorKind::Internal, Exit::Internal),
        ];
        for (kind, exit) in statuses {
            assert_eq!(Failure::from(error(kind)).exit, exit, "{kind:?}");
        }
        let url = leasehold::Error::config(Operation::Connect, "no");
        assert_eq!(Failure::from(url).exit, Exit::Config);
    }
}
