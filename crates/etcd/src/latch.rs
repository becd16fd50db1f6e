//! Latches: one value per name, changed by compare-and-set. What a step does to it is written once, in core's record.

use leasehold_core::{
    ClientId, Error, ErrorKind, Key, Operation, Result,
    backend::{
        Kind, LatchStep, Mode,
        record::{Answer, Moment, Record, Step, Surroundings},
    },
};

use crate::{
    entry::Entry,
    error::{Fault, misfit},
    names::Folder,
    proto::{KeyValue, TxnRequest},
    store::Shared,
    txn,
};

/// How often a step is taken anew because others were quicker.
const ROUNDS: usize = 128;

/// Takes a step and returns the count after it.
pub(crate) async fn step(store: &Shared, key: &Key, step: LatchStep) -> Result<u64> {
    let refused = |fault: Fault| fault.into_error(Operation::Latch);
    let folder = Folder::of(key);
    let look = vec![txn::get(folder.latch()), txn::list(&folder.holders())];
    let mut seen = store.wire.txn(TxnRequest { success: look.clone(), ..TxnRequest::default() }).await;
    for _ in 0..ROUNDS {
        let answer = seen.map_err(refused)?;
        if let Some(held) = answer.first(1) {
            let held = Entry::decode(&held.value)?;
            let kind = match held.mode {
                Mode::Permits { of, .. } => Kind::Semaphore { of: of.get() },
                _ => Kind::Lock,
            };
            return Err(Error::conflict(Operation::Latch, kind, "a latch"));
        }
        let before = answer.first(0);
        let (count, after) = taken(before, step)?;
        let Some(after) = after else { return Ok(count) };
        let written = before.map_or(0, |kv| kv.mod_revision);
        let write = if after.is_vacant() {
            txn::delete(folder.latch())
        } else {
            txn::put(folder.latch(), after.encode().into_bytes(), 0)
        };
        let compare = vec![txn::written_at(&folder.latch(), written), txn::absent(&folder.holders())];
        let request = TxnRequest { compare, success: vec![write], failure: look.clone() };
        let answer = store.wire.txn(request).await.map_err(refused)?;
        if answer.succeeded {
            return Ok(count);
        }
        seen = Ok(answer);
    }
    let message = "too many change this latch at the same time; try again";
    Err(Error::new(ErrorKind::Unavailable, Operation::Latch, message))
}

/// The count after a step, and what to keep if that changed.
fn taken(before: Option<&KeyValue>, step: LatchStep) -> Result<(u64, Option<Record>)> {
    let text = |kv: &KeyValue| String::from_utf8_lossy(&kv.value).into_owned();
    let mut record = before.map_or_else(|| Ok(Record::new(0)), |kv| Record::decode(&text(kv)))?;
    // A latch has neither holders nor time.
    let alive = |_: ClientId| true;
    let around = Surroundings { now: Moment(0), session: None, crowd: 0, alive: &alive };
    let applied = record.apply(&Step::Latch(step), &around);
    match applied.answer? {
        Answer::Count(count) => Ok((count, applied.changed.then_some(record))),
        other => Err(misfit(Operation::Latch, &format!("{other:?}"))),
    }
}
