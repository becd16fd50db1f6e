//! Steps on records, in transactions.
//!
//! The order within one matters: first the write lock, then the clock, then the record. A moment read before the
//! wait for the lock would be older than what others wrote meanwhile, and could let two leases overlap.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leasehold_core::{
    ClientId, Key, Operation, Result,
    backend::record::{Answer, Applied, Step, Surroundings, Wake},
};
use rusqlite::Connection;

use super::{
    clock,
    connection::Transaction,
    error::Tried,
    filesystem::Place,
    recent::{Recent, Written},
    rows,
    session::{Folder, RollCall},
};

/// The records of one database.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) place: Arc<Place>,
    pub(super) folder: Arc<Folder>,
    recent: Mutex<Recent>,
}

/// What steps did, for the caller to tell others once it is committed.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// One for each step.
    pub(super) answers: Vec<Result<Answer>>,
    /// Those to wake, record by record.
    pub(super) wakes: Vec<Vec<Wake>>,
    /// Sessions found dead, whose entries in the records touched are buried.
    pub(super) dead: Vec<ClientId>,
    /// Something was written.
    pub(super) wrote: bool,
}

impl Ledger {
    pub(super) fn new(place: Place, folder: Folder) -> Arc<Self> {
        Arc::new(Self { place: Arc::new(place), folder: Arc::new(folder), recent: Mutex::default() })
    }

    /// Takes all the steps in one transaction, on behalf of our session if there is one.
    pub(super) fn take(
        &self,
        connection: &Connection,
        own: Option<ClientId>,
        steps: &[(Key, Step)],
    ) -> Tried<Taken> {
        let transaction = Transaction::write(connection)?;
        let now = clock::now();
        // Who gives back a lock in a file that is no longer there does no harm.
        if steps.iter().any(|(_, step)| !matches!(step, Step::Release { .. })) {
            self.place.check()?;
        }
        let roll = RollCall::new(&self.folder, own);
        let mut taken = Taken::default();
        let mut recent = self.recent();
        for (key, step) in steps {
            roll.around(now, |around| taken.step(connection, &mut recent, (key, step), around))?;
        }
        drop(recent);
        transaction.commit()?;
        taken.dead = roll.dead();
        Ok(taken)
    }

    /// The answer to a step that would change nothing, without standing in any writer's way; `None` if it would.
    pub(super) fn glance(
        &self,
        connection: &Connection,
        own: Option<ClientId>,
        (key, step): &(Key, Step),
    ) -> Tried<Option<Answer>> {
        let _snapshot = Transaction::read(connection)?;
        let Ok(mut record) = rows::load(connection, key.full())? else { return Ok(None) };
        let roll = RollCall::new(&self.folder, own);
        let Applied { answer, changed, .. } = roll.around(clock::now(), |around| record.apply(step, around));
        Ok(answer.ok().filter(|_| !changed))
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        // Whatever is in there is checked against the database before it is used.
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn step(
        &mut self,
        connection: &Connection,
        recent: &mut Recent,
        (key, step): (&Key, &Step),
        around: &Surroundings<'_>,
    ) -> Tried<()> {
        if let Some(written) = recent.take(key.full())
            && let Some(applied) = swap(connection, recent, (key, step), written, around)?
        {
            self.note(applied);
            return Ok(());
        }
        let mut record = match rows::load(connection, key.full())? {
            Ok(record) => record,
            Err(error) => {
                self.answers.push(Err(error.about(key.name())));
                return Ok(());
            }
        };
        let applied = record.apply(step, around);
        if applied.changed {
            let written = Written::new(record);
            rows::save(connection, key.full(), &written)?;
            recent.remember(key.shared(), written);
        }
        self.note(applied);
        Ok(())
    }

    fn note(&mut self, Applied { answer, changed, wake }: Applied) {
        self.answers.push(answer);
        self.wrote |= changed;
        if !wake.is_empty() {
            self.wakes.push(wake);
        }
    }
}

/// Takes a step on the record as we last wrote it; `None` if that is not what the database has, or if the step would
/// change nothing and so find out nothing.
fn swap(
    connection: &Connection,
    recent: &mut Recent,
    (key, step): (&Key, &Step),
    Written { mut record, text }: Written,
    around: &Surroundings<'_>,
) -> Tried<Option<Applied>> {
    let before = (record.fence(), text);
    let applied = record.apply(step, around);
    if !applied.changed {
        return Ok(None);
    }
    let after = Written::new(record);
    if !rows::swap(connection, key.full(), before, &after)? {
        return Ok(None);
    }
    recent.remember(key.shared(), after);
    Ok(Some(applied))
}

/// What the database must still know after a crash of the machine, since no lease ends it.
pub(super) fn outlives_boots(step: &Step) -> bool {
    matches!(step, Step::Latch(_))
}

/// What a step is part of, for errors.
pub(super) fn operation(step: &Step) -> Operation {
    step.operation()
}
