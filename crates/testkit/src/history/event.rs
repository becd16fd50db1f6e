//! One line of a history: who did what, when, and what came of it.

/// Something a client asked or was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds on a clock that every recorder of this history shares.
    pub at: u64,
    /// The process that recorded it.
    pub process: u32,
    /// Pairs a request with its answer; unique within a process.
    pub operation: u64,
    /// Asked, or answered how.
    pub phase: Phase,
    /// The lock or cell it is about.
    pub name: String,
    /// Whose acquisition it is. Acquisitions of one owner never exclude each other (re-entry).
    pub owner: u64,
    /// What was done.
    pub act: Act,
}

/// Where in its life a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// About to be sent.
    Asked,
    /// Answered: it happened.
    Done,
    /// Answered: it did not happen.
    Failed,
    /// Unknown: it may have happened, or may yet.
    Unknown,
    /// Not an answer at all: the client was told, or noticed.
    Noticed,
}

/// What a client does, and what it learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Act {
    /// Asks for a lock.
    Acquire {
        /// How it wants to hold it.
        mode: Mode,
    },
    /// Was granted what it asked for: the answer to `Acquire`.
    Granted {
        /// The fence it was given.
        fence: u64,
        /// When it stops believing unless renewed, on the history's clock.
        deadline: u64,
    },
    /// The lease was renewed.
    Renewed {
        /// When it stops believing unless renewed again.
        deadline: u64,
    },
    /// Gives the lock back.
    Release,
    /// Was told, or noticed, that the lock is lost.
    Lost,
    /// Asks itself whether it still holds the lock.
    Check,
    /// It does, as far as it knows: the answer to `Check`.
    Held {
        /// When it stops believing unless renewed, read after the answer.
        deadline: u64,
    },
    /// Writes a cell under the lock, from what it read there before.
    Write {
        /// The value it read: zero if the cell was empty.
        read: u64,
        /// The value it writes, unique in the history and not zero.
        value: u64,
        /// The fence it wrote with.
        fence: u64,
    },
    /// Reads a cell when all is over.
    Read {
        /// The value found: zero if the cell is empty.
        value: u64,
    },
}

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Alone.
    Exclusive,
    /// With other shared holders.
    Shared,
    /// So many permits of so many.
    Permits {
        /// Permits taken.
        take: u32,
        /// Permits in all.
        of: u32,
    },
}
