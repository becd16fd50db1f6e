//! The cell that a job's book lies in, and the clock that its slots go by.
//!
//! A change is a compare-and-set: what somebody else wrote meanwhile is read again and never written over. The clock is the
//! store's, so that processes whose own clocks differ agree on what is due; where the store has none it is this machine's.

use std::{sync::Arc, time::Duration};

use super::{Engine, book::Book, sighting::Sighting};
use crate::{
    backend::{CellWrite, Expect},
    error::{Error, ErrorKind, Operation, Result},
    key::Key,
};

/// What goes before the name of a job's cell.
pub(crate) const PREFIX: &str = "job:";

/// How often a change is tried against others, and against answers that are lost.
const TRIES: u32 = 16;

/// How long a forgotten book stays.
const MOMENT: Duration = Duration::from_millis(1);

/// The ledger of one job.
#[derive(Debug)]
pub(crate) struct Ledger {
    engine: Arc<Engine>,
    cell: String,
}

/// What to do with a book that was read.
#[derive(Debug)]
pub(crate) enum Edit<T> {
    /// Write it as it is now, and then this is the answer.
    Write(T),
    /// Leave it: this is the answer.
    Leave(T),
}

impl Ledger {
    pub(crate) fn of(engine: &Arc<Engine>, key: &Key) -> Self {
        Self { engine: engine.clone(), cell: [PREFIX, key.full()].concat() }
    }

    /// The time that slots go by.
    pub(crate) async fn sight(&self) -> Result<Sighting> {
        self.engine.sight().await
    }

    /// The book as it is; `None` if nobody has seen the job yet.
    pub(crate) async fn read(&self) -> Result<Option<Book>> {
        let cell = self.engine.backend.read_cell(&self.cell).await?;
        cell.map(|cell| Book::read(&cell.value)).transpose()
    }

    /// Changes the book, a new one if there is none. The edit sees the time and is made again whenever somebody else was
    /// faster or the answer was lost; in the latter case it may find that it was made already.
    pub(crate) async fn change<T>(&self, mut edit: impl FnMut(&mut Book, Duration) -> Edit<T>) -> Result<T> {
        for _ in 0..TRIES {
            // The time first: what it is by now is later than it, so nothing is given out early.
            let now = self.sight().await?.time;
            let cell = self.engine.backend.read_cell(&self.cell).await?;
            let expect = cell.as_ref().map_or(Expect::Absent, |cell| Expect::Version(cell.version));
            let mut book = cell.map_or_else(|| Ok(Book::default()), |cell| Book::read(&cell.value))?;
            let answer = match edit(&mut book, now) {
                Edit::Leave(answer) => return Ok(answer),
                Edit::Write(answer) => answer,
            };
            match self.engine.backend.write_cell(&self.cell, expect, &book.write()?, None).await {
                Ok(CellWrite::Written(_)) => return Ok(answer),
                Ok(CellWrite::Conflict) => {}
                Err(error) if error.kind() == ErrorKind::Indeterminate => {
                    tracing::debug!(%error, "looking whether a job was written down");
                }
                Err(error) => return Err(error),
            }
        }
        let message = "others change this job all the time, or the store loses its answers; try again";
        Err(Error::new(ErrorKind::Unavailable, Operation::Job, message))
    }

    /// Takes the book away: an empty one that lasts a moment is written over it, because a store need not be able to remove.
    /// Says whether there was one.
    pub(crate) async fn forget(&self) -> Result<bool> {
        let Some(cell) = self.engine.backend.read_cell(&self.cell).await? else { return Ok(false) };
        let (expect, empty) = (Expect::Version(cell.version), Book::default().write()?);
        match self.engine.backend.write_cell(&self.cell, expect, &empty, Some(MOMENT)).await? {
            CellWrite::Written(_) => Ok(true),
            CellWrite::Conflict => {
                let message = "somebody changed this job meanwhile; try again";
                Err(Error::new(ErrorKind::Unavailable, Operation::Job, message))
            }
        }
    }
}
