//! Steps on records: computed here, written on condition.
//!
//! The moment a step is computed for comes with the row it is computed from, so it is never later than the write: a
//! lease is never found to be over before it is, and one that is granted ends a little early rather than late. Whoever
//! holds it counts from before the row was asked for.

use std::time::{Duration, Instant};

use leasehold_core::{
    Error, ErrorKind, Key, Operation, Result,
    backend::{
        Attempt, ClaimSpec, Mode,
        record::{Answer, Applied, Moment, Record, Step, Surroundings},
    },
};

use super::{
    After, Database, Failure, First, Found, Swapped, Tried, bell::Bells, database::due, recent::Recent,
};

/// How many waiters outside the fair line a record lists: everybody who looks reads all of it.
const CROWD: usize = 16;

/// How often a step is computed anew because others were quicker. Each time one of them got on.
const TRIES: u32 = 64;

/// How many of these follow each other without a pause.
const QUICK: u32 = 2;

/// The longest pause between two tries.
const PAUSE: Duration = Duration::from_millis(32);

/// The records of one database.
#[derive(Debug)]
pub(super) struct Ledger<D> {
    pub(super) database: D,
    pub(super) bells: Bells,
    recent: Recent,
}

/// An answer, and whether a row was made for it.
pub(super) struct Taken {
    pub(super) answer: Result<Answer>,
    pub(super) made_row: bool,
}

impl<D: Database> Ledger<D> {
    pub(super) fn new(database: D, bells: Bells) -> Self {
        Self { database, bells, recent: Recent::default() }
    }

    /// Takes a step.
    pub(super) async fn take(&self, key: &Key, step: &Step) -> Result<Taken> {
        let mut found = self.recall(key, step).map(|known| (known, Origin::Memory));
        let mut last = None;
        let end = Instant::now() + self.database.patience();
        for tried in 0..TRIES {
            pause(tried).await;
            if last.is_some() && Instant::now() > end {
                break;
            }
            let row = match found.take() {
                Some(row) => row,
                None => match self.see(key, step).await {
                    Ok(row) => (row, Origin::Server),
                    Err(Failure::GaveWay(error)) => {
                        last = Some(error);
                        continue;
                    }
                    Err(Failure::Final(error)) => return Err(error),
                },
            };
            match self.write(key, step, row).await {
                Ok(Written::Done(taken)) => return Ok(taken),
                Ok(Written::Outrun(other)) => found = other.map(|row| (row, Origin::Server)),
                Err(Failure::GaveWay(error)) => last = Some(error),
                Err(Failure::Final(error)) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| {
            let message = "others change this name faster than we can; try again";
            Error::new(ErrorKind::Unavailable, Operation::Acquire, message)
        }))
    }

    /// The row as we know it, for a step that depends on no clock: to give back what we hold.
    fn recall(&self, key: &Key, step: &Step) -> Option<Found> {
        let known = self.recent.take(key.full())?;
        matches!(step, Step::Release { barrier: false, .. }).then_some(known)
    }

    /// The row as it is; for who wants to hold a name that nobody uses, as it is once that is written.
    async fn see(&self, key: &Key, step: &Step) -> Tried<Found> {
        match step {
            Step::Attempt { spec, waiting: false } if spec.mode != Mode::Open => {
                // Ours may be there from an earlier try whose answer was lost: by the server's clock only what is left of
                // that lease is granted.
                self.database.claim(key.full(), &first(spec, step)).await
            }
            _ => self.database.look(key.full()).await,
        }
    }

    async fn write(&self, key: &Key, step: &Step, (found, origin): (Found, Origin)) -> Tried<Written> {
        let mut record = match found.record() {
            Ok(record) => record,
            Err(error) => return Ok(Written::Done(Taken { answer: Err(error), made_row: false })),
        };
        let before = found.version();
        let Applied { answer, changed, wake } = record.apply(step, &around(found.now));
        if !changed && origin == Origin::Memory {
            // To find nothing to do in what we remember proves nothing.
            return Ok(Written::Outrun(None));
        }
        if !changed {
            let made_row = before == Some(found.floor + 1);
            if matches!(answer, Ok(Answer::Attempt(Attempt::Granted(_)))) {
                self.recent.remember(key.shared(), found);
            }
            return Ok(Written::Done(Taken { answer, made_row }));
        }
        let (here, elsewhere) = self.bells.sort(&wake);
        let text = (!record.is_vacant()).then(|| record.encode());
        let due = record.ends().map(|ends| due(found.now, ends));
        let after = After { fence: record.fence(), text, due, wake: elsewhere };
        match self.database.swap(key.full(), &found, &after).await? {
            Swapped::Done(version) => {
                for id in here {
                    self.bells.ring(id);
                }
                self.recent.remember(key.shared(), written(&found, version, after));
                Ok(Written::Done(Taken { answer, made_row: before.is_none() }))
            }
            // A statement may see the row as it was before another's that it waited for.
            Swapped::Other(other) if other.version() == before => Ok(Written::Outrun(None)),
            Swapped::Other(other) => Ok(Written::Outrun(Some(other))),
        }
    }
}

/// Where we have a row from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Memory,
    Server,
}

/// What became of a step computed from a row.
enum Written {
    Done(Taken),
    /// The row had changed; this is how it is, if we were told.
    Outrun(Option<Found>),
}

/// A record in which this acquisition is alone, told from zero.
fn first(spec: &ClaimSpec, step: &Step) -> First {
    let mut record = Record::new(0);
    let _: Applied = record.apply(step, &around(Moment(0)));
    debug_assert_eq!(record.fence(), spec.fences, "a grant moves the fence by what it reserves");
    First { text: record.encode(), fences: spec.fences, ends: record.ends().unwrap_or_default() }
}

fn written(found: &Found, version: u64, after: After) -> Found {
    let row =
        super::Row { version, fence: after.fence, fence_base: 0, moment_base: Moment(0), text: after.text };
    Found { now: found.now, floor: found.floor, row: Some(row) }
}

/// Nobody's session is known here: leases tell who lives.
pub(super) fn around(now: Moment) -> Surroundings<'static> {
    Surroundings { now, session: None, crowd: CROWD, alive: &|_| true }
}

/// Those who were outrun make way for a moment, each for another time.
async fn pause(tried: u32) {
    let Some(excess) = tried.checked_sub(QUICK) else { return };
    let most = (Duration::from_millis(1) * 2_u32.pow(excess.min(6))).min(PAUSE);
    let share = getrandom::u32().map_or(1.0, |number| f64::from(number) / f64::from(u32::MAX));
    tokio::time::sleep(most.mul_f64(share)).await;
}
