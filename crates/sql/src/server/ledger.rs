//! Steps on records: computed here, written on condition.
//!
//! The moment a step is computed for comes with the row it is computed from, so it is never later than the write: a
//! lease is never found to be over before it is, and one that is granted ends a little early rather than late. Whoever
//! holds it counts from before the row was asked for.

use std::{cell::RefCell, collections::HashMap, time::Duration};

use leasehold_core::{
    ClaimId, ClientId, Error, ErrorKind, Key, Operation, Result,
    backend::{
        Attempt, ClaimSpec, Mode,
        record::{Answer, Applied, Moment, Record, Step, Surroundings},
    },
};
use tokio::time::{Instant, timeout_at};

use super::{
    After, Database, Failure, First, Found, Swapped, Tried, bell::Bells, database::due, recent::Recent,
    turns::Turns,
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
    turns: Turns,
}

/// An answer, whether it leaves a row that is to be removed in the end, and whether what it grants ends with a session.
pub(super) struct Taken {
    pub(super) answer: Result<Answer>,
    pub(super) leaves_row: bool,
    pub(super) in_session: bool,
}

impl Taken {
    fn failed(error: Error) -> Self {
        Self { answer: Err(error), leaves_row: false, in_session: false }
    }
}

impl<D: Database> Ledger<D> {
    pub(super) fn new(database: D, bells: Bells) -> Self {
        Self { database, bells, recent: Recent::default(), turns: Turns::default() }
    }

    /// Takes a step, in the name of a session if there is one.
    pub(super) async fn take(&self, key: &Key, step: &Step, own: Option<ClientId>) -> Result<Taken> {
        let mut found = self.recall(key, step).map(|known| (known, Origin::Memory));
        let (mut last, mut turn) = (None, None);
        let end = Instant::now() + self.database.patience();
        for tried in 0..TRIES {
            pause(tried).await;
            if last.is_some() && Instant::now() > end {
                break;
            }
            let row = match found.take() {
                Some(row) => row,
                None => match self.see(key, step, own).await {
                    Ok(row) => (row, Origin::Server),
                    Err(Failure::GaveWay(error)) => {
                        last = Some(error);
                        continue;
                    }
                    Err(Failure::Final(error)) => return Err(error),
                },
            };
            let origin = row.1;
            match self.write(key, step, own, row).await {
                Ok(Written::Done(taken)) => return Ok(taken),
                Ok(Written::Outrun(other))
                    if turn.is_some() || origin == Origin::Memory || !takes_turns(step) =>
                {
                    found = other.map(|row| (row, Origin::Server));
                }
                // What was seen before it is our turn is out of date by then.
                Ok(Written::Outrun(_)) => {
                    let Ok(ours) = timeout_at(end, self.turns.wait(key.shared())).await else { break };
                    turn = Some(ours);
                }
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
    async fn see(&self, key: &Key, step: &Step, own: Option<ClientId>) -> Tried<Found> {
        match step {
            Step::Attempt { spec, waiting: false } if spec.mode != Mode::Open => {
                // Ours may be there from an earlier try whose answer was lost: by the server's clock only what is left of
                // that lease is granted.
                self.database.claim(key.full(), &first(spec, step, own)).await
            }
            _ => self.database.look(key.full()).await,
        }
    }

    async fn write(
        &self,
        key: &Key,
        step: &Step,
        own: Option<ClientId>,
        (found, origin): (Found, Origin),
    ) -> Tried<Written> {
        let before_step = match found.record() {
            Ok(record) => record,
            Err(error) => return Ok(Written::Done(Taken::failed(error))),
        };
        let before = found.version();
        let stepped = self.judged(found.now, own, |around| {
            let mut record = before_step.clone();
            let mut applied = record.apply(step, around);
            // What a session of ours left that was lost is ours once it is written: unless somebody was quicker.
            if let (Some(own), Some(id)) = (own, subject(step)) {
                applied.changed |= record.adopt(id, own);
            }
            (record, applied)
        });
        let (record, Applied { answer, changed, wake }) = stepped.await?;
        let in_session = subject(step).is_some_and(|id| record.session_of(id).is_some());
        if !changed && origin == Origin::Memory {
            // To find nothing to do in what we remember proves nothing.
            return Ok(Written::Outrun(None));
        }
        if !changed {
            let leaves_row = before == Some(found.floor + 1);
            if matches!(answer, Ok(Answer::Attempt(Attempt::Granted(_)))) {
                self.recent.remember(key.shared(), found);
            }
            return Ok(Written::Done(Taken { answer, leaves_row, in_session }));
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
                let leaves_row = before.is_none() || after.text.is_none();
                self.recent.remember(key.shared(), written(&found, version, after));
                Ok(Written::Done(Taken { answer, leaves_row, in_session }))
            }
            // A statement may see the row as it was before another's that it waited for.
            Swapped::Other(other) if other.version() == before => Ok(Written::Outrun(None)),
            Swapped::Other(other) => Ok(Written::Outrun(Some(other))),
        }
    }
}

impl<D: Database> Ledger<D> {
    /// Does something with what it may know at that moment, until it asks for no session of which it is not known
    /// whether it lives. Only those are asked for that stand in somebody's way.
    pub(super) async fn judged<T: Send>(
        &self,
        now: Moment,
        session: Option<ClientId>,
        work: impl Fn(&Surroundings<'_>) -> T + Send,
    ) -> Tried<T> {
        let mut known = HashMap::new();
        loop {
            let (done, asked) = judging(now, session, &known, &work);
            if asked.is_empty() {
                return Ok(done);
            }
            let living = self.database.living(&asked).await?;
            known.extend(asked.into_iter().map(|id| (id, living.contains(&id))));
        }
    }
}

/// Does it once, with what is known of sessions. Others that it asked for were taken to live.
fn judging<T>(
    now: Moment,
    session: Option<ClientId>,
    known: &HashMap<ClientId, bool>,
    work: impl Fn(&Surroundings<'_>) -> T,
) -> (T, Vec<ClientId>) {
    let asked = RefCell::new(Vec::new());
    let alive = |id: ClientId| {
        known.get(&id).copied().unwrap_or_else(|| {
            asked.borrow_mut().push(id);
            true
        })
    };
    let done = work(&Surroundings { now, session, crowd: CROWD, alive: &alive });
    (done, asked.into_inner())
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

/// Renewals and releases do not wait behind those who try: they come in time or not at all, and let others get on.
fn takes_turns(step: &Step) -> bool {
    matches!(step, Step::Attempt { .. })
}

/// Whose lease a step is about.
fn subject(step: &Step) -> Option<ClaimId> {
    match step {
        Step::Attempt { spec, .. } => Some(spec.id),
        Step::Renew(renew) => Some(renew.id),
        Step::Recount { id, .. } | Step::Raise { id, .. } => Some(*id),
        _ => None,
    }
}

/// A record in which this acquisition is alone, told from zero.
fn first(spec: &ClaimSpec, step: &Step, session: Option<ClientId>) -> First {
    let mut record = Record::new(0);
    let around = Surroundings { now: Moment(0), session, crowd: CROWD, alive: &|_| true };
    let _: Applied = record.apply(step, &around);
    debug_assert_eq!(record.fence(), spec.fences, "a grant moves the fence by what it reserves");
    First { text: record.encode(), fences: spec.fences, ends: record.ends().unwrap_or_default() }
}

fn written(found: &Found, version: u64, after: After) -> Found {
    let row =
        super::Row { version, fence: after.fence, fence_base: 0, moment_base: Moment(0), text: after.text };
    Found { now: found.now, floor: found.floor, row: Some(row) }
}

/// Those who were outrun make way for a moment, each for another time.
async fn pause(tried: u32) {
    let Some(excess) = tried.checked_sub(QUICK) else { return };
    let most = (Duration::from_millis(1) * 2_u32.pow(excess.min(6))).min(PAUSE);
    let share = getrandom::u32().map_or(1.0, |number| f64::from(number) / f64::from(u32::MAX));
    tokio::time::sleep(most.mul_f64(share)).await;
}
