//! The one error of this crate: what kind it is, what to do about it, during which act, on which name, and why.
//!
//! Not getting a lock is not an error where the caller asked for a try; it is the kind `Busy` where the caller
//! asked to have it. Not *knowing* whether a request took effect is a kind of its own, `Indeterminate`.

use std::{borrow::Cow, error::Error as StdError, fmt, sync::Arc};

use crate::backend::{Busy, Kind, Loss};

/// What `Result` means in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation did not do what was asked.
pub struct Error(Box<Parts>);

#[derive(Debug)]
struct Parts {
    kind: ErrorKind,
    operation: Operation,
    name: Option<Arc<str>>,
    message: Cow<'static, str>,
    busy: Option<Busy>,
    loss: Option<Loss>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// What sort of failure this is. Programs decide by it; people read the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An option, name or URL is not acceptable. Nothing was sent.
    Config,
    /// The store cannot do this. Nothing was sent.
    Unsupported,
    /// Somebody else holds the lock and the time to wait is over; [`Error::busy`] says who.
    Busy,
    /// The lock was held and is so no longer; [`Error::loss`] says why.
    Lost,
    /// The name is in use as something else, or with other numbers.
    Conflict,
    /// Waiting would be waiting for oneself.
    WouldDeadlock,
    /// The request may or may not have taken effect.
    Indeterminate,
    /// The store refused our credentials or our rights.
    Denied,
    /// The store cannot be reached or cannot serve us now. The request took no effect.
    Unavailable,
    /// As many of this client wait as [may](crate::ClientBuilder::max_waiting). Nothing is held, and nobody waits for it.
    Capacity,
    /// The client is shut down.
    Closed,
    /// The store holds something we cannot make sense of, or we have a defect.
    Internal,
}

/// What a caller can do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Retry {
    /// The same request will fail the same way.
    No,
    /// The same request may succeed at once.
    Now,
    /// The same request may succeed after a pause.
    Later,
}

/// The act during which an error happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Opening a store.
    Connect,
    /// Reading a text: a URL, an id, a ticket.
    Parse,
    /// Checking a name.
    Name,
    /// Acquiring a lock.
    Acquire,
    /// Entering a held lock again.
    Reenter,
    /// Renewing or extending a lease.
    Renew,
    /// Checking whether a lock is still held.
    Check,
    /// Releasing a lock.
    Release,
    /// Changing or reading a latch.
    Latch,
    /// Changing or reading a rate limiter.
    Rate,
    /// Looking at locks.
    Inspect,
    /// Force-releasing a lock.
    Break,
    /// Reading or writing a cell.
    Cell,
    /// Running, reading or changing a job.
    Job,
    /// Making ids.
    Ids,
    /// Closing a client.
    Shutdown,
}

impl Error {
    /// An error of this kind, with a message that says what to do: lower case, no full stop.
    pub fn new(kind: ErrorKind, operation: Operation, message: impl Into<Cow<'static, str>>) -> Self {
        let message = message.into();
        Self(Box::new(Parts { kind, operation, name: None, message, busy: None, loss: None, source: None }))
    }

    /// An option, name or URL that cannot be accepted.
    pub fn config(operation: Operation, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Config, operation, message)
    }

    /// A name already in use as another kind of lock.
    pub fn conflict(operation: Operation, found: Kind, wanted: &str) -> Self {
        let message = format!("this name is in use as {found}, not as {wanted}; choose another name");
        Self::new(ErrorKind::Conflict, operation, message)
    }

    pub(crate) fn from_busy(operation: Operation, busy: Busy) -> Self {
        let mut error = Self::new(ErrorKind::Busy, operation, busy.to_string());
        error.0.busy = Some(busy);
        error
    }

    pub(crate) fn used_up(operation: Operation, busy: Busy) -> Self {
        let after = humantime::format_duration(busy.retry_after.unwrap_or_default());
        let message = format!("the rate is used up; asking again can help in {after}");
        let mut error = Self::new(ErrorKind::Busy, operation, message);
        error.0.busy = Some(busy);
        error
    }

    pub(crate) fn from_loss(operation: Operation, loss: Loss) -> Self {
        let mut error = Self::new(ErrorKind::Lost, operation, loss.to_string());
        error.0.loss = Some(loss);
        error
    }

    /// The same error about this name.
    #[must_use]
    pub fn about(mut self, name: &str) -> Self {
        self.0.name = Some(name.into());
        self
    }

    /// The same error during another act: a store says what went wrong, its caller what was being done.
    #[must_use]
    pub fn during(mut self, operation: Operation) -> Self {
        self.0.operation = operation;
        self
    }

    /// What it came from, where a store said: for the store itself, to tell its own errors apart.
    pub fn cause(&self) -> Option<&(dyn StdError + Send + Sync + 'static)> {
        self.0.source.as_deref()
    }

    /// The same error with what caused it.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// What sort of failure this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What can be done about it.
    pub fn retry(&self) -> Retry {
        match self.0.kind {
            ErrorKind::Indeterminate => Retry::Now,
            ErrorKind::Busy | ErrorKind::Unavailable | ErrorKind::Capacity => Retry::Later,
            _ => Retry::No,
        }
    }

    /// During which act it happened.
    pub fn operation(&self) -> Operation {
        self.0.operation
    }

    /// On which name.
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// Who holds the lock, for the kind `Busy`.
    pub fn busy(&self) -> Option<&Busy> {
        self.0.busy.as_ref()
    }

    /// How the lock was lost, for the kind `Lost`.
    pub fn loss(&self) -> Option<&Loss> {
        self.0.loss.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { operation, name, message, source, .. } = &*self.0;
        match name {
            Some(name) => write!(f, "{operation} {name:?}: {message}")?,
            None => write!(f, "{operation}: {message}")?,
        }
        match source {
            Some(source) => write!(f, " ({source})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connect",
            Self::Parse => "parse",
            Self::Name => "name",
            Self::Acquire => "acquire",
            Self::Reenter => "re-enter",
            Self::Renew => "renew",
            Self::Check => "check",
            Self::Release => "release",
            Self::Latch => "latch",
            Self::Rate => "rate",
            Self::Inspect => "inspect",
            Self::Break => "break",
            Self::Cell => "cell",
            Self::Job => "job",
            Self::Ids => "ids",
            Self::Shutdown => "shutdown",
        })
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { kind, operation, name, message, busy, loss, source } = &*self.0;
        let mut out = f.debug_struct("Error");
        out.field("kind", kind).field("operation", operation).field("name", name).field("message", message);
        out.field("busy", busy).field("loss", loss).field("source", source).finish()
    }
}

/// The source is part of the message already; reporters that print chains would print it twice, so it is not
/// offered as `source()`.
impl StdError for Error {}

/// So that `why = guard.lost() => return Err(why.into())` reads as it should.
impl From<Loss> for Error {
    fn from(loss: Loss) -> Self {
        Self::from_loss(Operation::Check, loss)
    }
}
