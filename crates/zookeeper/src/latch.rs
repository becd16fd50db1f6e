//! A latch: a record in one node, changed by compare-and-set on the node's version.
//!
//! The node stands in the container of its name, beside those who wait for it and those who want the name to be a
//! lock: whoever looks sees both. It is gone when the latch is open, which is what wakes those who wait.

use leasehold_core::{
    Error, ErrorKind, Operation,
    backend::{
        Kind, LatchStep,
        record::{Answer, Moment, Record, Step, Surroundings},
    },
};
use zookeeper_client::CreateMode;

use crate::{admin, error::Fault, line::Line, names::LATCH, session::Session};

/// How often others may be faster before that is an error.
const TRIES: usize = 200;

/// Takes a step and returns the count after it.
pub(crate) async fn step(session: &Session, parent: &str, step: LatchStep) -> Result<u64, Fault> {
    for _ in 0..TRIES {
        let found = admin::read_node(session, parent, LATCH).await?;
        if found.is_none() {
            refuse_locks(session, parent).await?;
        }
        let mut record = match &found {
            Some((data, _)) => read(data)?,
            None => Record::new(0),
        };
        let before = record.clone();
        let count = apply(&mut record, step)?;
        if record == before || write(session, parent, found.map(|(_, stat)| stat.version), &record).await? {
            return Ok(count);
        }
    }
    let message = "too many others change this latch at the same time; try again";
    Err(Fault::NotSent(Error::new(ErrorKind::Unavailable, Operation::Latch, message)))
}

fn apply(record: &mut Record, step: LatchStep) -> Result<u64, Fault> {
    // A latch knows no time: nothing in its record expires.
    let around = Surroundings { now: Moment(0), session: None, crowd: 0, alive: &|_| true };
    match record.apply(&Step::Latch(step), &around).answer.map_err(Fault::NotSent)? {
        Answer::Count(count) => Ok(count),
        _ => Err(Fault::NotSent(misfit())),
    }
}

/// What is known of a name's kind, with the count if it is a latch.
pub(crate) async fn counted(session: &Session, parent: &str, kind: Kind) -> Result<Kind, Fault> {
    if !matches!(kind, Kind::Latch { .. }) {
        return Ok(kind);
    }
    let found = admin::read_node(session, parent, LATCH).await?;
    Ok(found.and_then(|(data, _)| read(&data).ok()?.kind()).unwrap_or(kind))
}

/// Writes the record if the node is as it was read; says whether it was.
async fn write(session: &Session, parent: &str, known: Option<i32>, record: &Record) -> Result<bool, Fault> {
    let path = format!("{parent}/{LATCH}");
    let text = record.encode();
    let written = match known {
        None => {
            let options = session.options(CreateMode::Persistent);
            let created = session.create(&path, text.as_bytes(), &options).await.map(drop);
            if created.is_ok() {
                // Somebody may have come for a lock meanwhile: one of the two has to give way.
                if let Err(conflict) = refuse_locks(session, parent).await {
                    session.delete(&path).await?;
                    return Err(conflict);
                }
            }
            created
        }
        version if record.is_vacant() => session.answered(session.client.delete(&path, version)).await,
        version => session.answered(session.client.set_data(&path, text.as_bytes(), version)).await.map(drop),
    };
    match written {
        Ok(()) => Ok(true),
        Err(fault) if fault.is_node_exists() || fault.is_bad_version() || fault.is_no_node() => Ok(false),
        Err(fault) => Err(fault),
    }
}

async fn refuse_locks(session: &Session, parent: &str) -> Result<(), Fault> {
    let line = Line { latch: false, ..Line::of(session.children(parent).await?) };
    match line.kind() {
        None => Ok(()),
        Some(found) => Err(Fault::NotSent(Error::conflict(Operation::Latch, found, "a latch"))),
    }
}

fn read(data: &[u8]) -> Result<Record, Fault> {
    Record::decode(&String::from_utf8_lossy(data)).map_err(Fault::NotSent)
}

fn misfit() -> Error {
    Error::new(ErrorKind::Internal, Operation::Latch, "a latch gave an answer that fits no such step")
}
