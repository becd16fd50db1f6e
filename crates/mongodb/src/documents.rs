//! Documents: what is in one, and the pipelines that change it only if it is as expected. No I/O.
//!
//! ```text
//! { _id: NAME, version: TOKEN, record: { … }, ends: MICROSECONDS, sweep: DATE, wake: "TOKEN SESSION/CLAIM …" }
//! ```
//!
//! `version` is a token that no other write ever has: a document with the token of a write is what that write made.
//! `ends` is when time alone will have emptied the record; a document that has come so far is free to whoever asks.

use std::{sync::Arc, time::Duration};

use leasehold_core::{
    Error, ErrorKind, Operation, Result,
    backend::{
        ClaimSpec,
        record::{FORMAT, Moment, Record, Step, Surroundings, Wake},
    },
};
use mongodb::bson::{Bson, DateTime, Document, doc, serialize_to_bson};

use crate::error::foreign;

/// How long a document is kept after the last of what is in it, so that its fence outlives clocks that are set back.
const IDLE: Duration = Duration::from_secs(24 * 3600);

/// How many fences there are in a millisecond of a name that begins anew.
const FENCES: i64 = 1024;

/// How many waiters one release wakes at most.
const REACH: usize = 16;

/// How many of those who could have the lock alone: the first may be dead.
const ALONE: usize = 2;

/// A document as it was seen.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// `None` if there is none.
    pub(crate) version: Option<String>,
    pub(crate) record: Record,
    /// The server's time.
    pub(crate) now: Moment,
}

impl Seen {
    /// A name without a document.
    pub(crate) fn nothing(now: Moment) -> Self {
        Self { version: None, record: Record::new(floor(now)), now }
    }

    /// What a request returned.
    pub(crate) fn read(document: &Document) -> Result<Self> {
        let version = document.get_str("version").map_err(|_| foreign("version"))?;
        let record = document.get_document("record").map_err(|_| foreign("record"))?;
        let text = serde_json::to_string(record).map_err(|error| foreign("record").because(error))?;
        Ok(Self { version: Some(version.to_owned()), record: Record::decode(&text)?, now: time(document)? })
    }
}

/// The server's time when it answered.
pub(crate) fn time(document: &Document) -> Result<Moment> {
    document.get_datetime("now").map(|now| moment(*now)).map_err(|_| foreign("time"))
}

pub(crate) fn moment(date: DateTime) -> Moment {
    Moment(date.timestamp_millis().max(0).cast_unsigned().saturating_mul(1000))
}

/// What the fence of a name without a document starts from.
fn floor(now: Moment) -> u64 {
    (now.0 / 1000).saturating_mul(FENCES.cast_unsigned())
}

/// The pipeline that changes nothing.
pub(crate) fn look() -> Document {
    doc! { "$replaceWith": "$$ROOT" }
}

/// The pipeline of an attempt that wins if nobody and nothing is there: the whole of an uncontended acquire. The server
/// puts its own time, and the next fences, into the record that the attempt would make of an empty one.
pub(crate) fn open(spec: &Arc<ClaimSpec>, around: &Surroundings<'_>, version: &str) -> Result<Document> {
    let mut record = Record::new(0);
    let at_zero = Surroundings { now: Moment(0), ..*around };
    let applied = record.apply(&Step::Attempt { spec: spec.clone(), waiting: false }, &at_zero);
    applied.answer?;
    let record = written(&record)?;
    let held =
        record.get_array("holders").ok().and_then(|holders| holders.first()).and_then(Bson::as_document);
    let held = held.cloned().ok_or_else(|| foreign("holder"))?;
    let lease = held.get_i64("expires").map_err(|_| foreign("lease"))?;
    let now = doc! { "$multiply": [{ "$toLong": "$$NOW" }, 1000_i64] };
    let begun = doc! { "$multiply": [{ "$toLong": "$$NOW" }, FENCES] };
    let fence = doc! { "$ifNull": ["$record.fence", begun] };
    let after = |number: &Bson, start: &Document| doc! { "$add": [start.clone(), number.clone()] };
    let number = |document: &Document, field: &str| document.get(field).cloned().unwrap_or(Bson::Int64(0));
    let holder = doc! {
        "fence": after(&number(&held, "fence"), &fence),
        "since": after(&number(&held, "since"), &now),
        "expires": after(&number(&held, "expires"), &now),
    };
    let fence = after(&number(&record, "fence"), &fence);
    let is_free = doc! { "$and": [
        { "$lte": [{ "$ifNull": ["$ends", 0_i64] }, now.clone()] },
        { "$lte": [{ "$ifNull": ["$record.format", 0] }, i64::from(FORMAT)] },
    ] };
    let ours = doc! {
        "_id": "$_id",
        "version": { "$literal": version },
        "record": { "$mergeObjects": [
            { "$literal": record },
            { "fence": fence, "holders": [{ "$mergeObjects": [{ "$literal": held }, holder] }] },
        ] },
        "ends": { "$add": [now, lease] },
        "sweep": { "$max": ["$sweep", { "$add": ["$$NOW", lease / 1000 + millis(IDLE)] }] },
    };
    Ok(doc! { "$replaceWith": { "$cond": [is_free, ours, "$$ROOT"] } })
}

/// The pipeline that puts this in place of what was seen, if it is still there.
pub(crate) fn swap(
    name: &str,
    seen: Option<&str>,
    (record, wake): (&Record, &[Wake]),
    version: &str,
) -> Result<Document> {
    let ends = record.ends().map_or(i64::MAX, |end| i64::try_from(end.0).unwrap_or(i64::MAX));
    let mut document = doc! { "_id": name, "version": version, "record": written(record)?, "ends": ends };
    if record.ends().is_some() {
        // Not before a name that begins anew would begin above its fence.
        let fence = i64::try_from(record.fence()).unwrap_or(i64::MAX) / FENCES;
        let sweep = (ends / 1000).max(fence).saturating_add(millis(IDLE));
        document.insert("sweep", DateTime::from_millis(sweep));
    }
    if let Some(wake) = woken(version, wake) {
        document.insert("wake", wake);
    }
    let seen = seen.map_or(Bson::Null, Bson::from);
    let is_same = doc! { "$eq": [{ "$ifNull": ["$version", Bson::Null] }, { "$literal": seen }] };
    Ok(doc! { "$replaceWith": { "$cond": [is_same, { "$literal": document }, "$$ROOT"] } })
}

/// Whom a write wakes, in a text that no other write has.
fn woken(version: &str, wake: &[Wake]) -> Option<String> {
    let mut words = vec![version.to_owned()];
    let mut alone = 0;
    for wake in wake.iter().take(REACH) {
        let Some(session) = wake.session else { continue };
        words.push(format!("{session}/{}", wake.id));
        alone += usize::from(wake.alone);
        if alone == ALONE {
            break;
        }
    }
    (words.len() > 1).then(|| words.join(" "))
}

/// A record as people see it in MongoDB: the fields it has everywhere.
fn written(record: &Record) -> Result<Document> {
    let read: Result<serde_json::Value, _> = serde_json::from_str(&record.encode());
    let value = read.map_err(unwritable)?;
    match serialize_to_bson(&value) {
        Ok(Bson::Document(document)) => Ok(document),
        Ok(_) => Err(foreign("record")),
        Err(error) => Err(unwritable(error)),
    }
}

fn unwritable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    let message = "a record cannot be written as a document";
    Error::new(ErrorKind::Internal, Operation::Inspect, message).because(error)
}

pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use proptest::{
        collection::vec,
        prelude::{Just, Strategy, any, prop_oneof},
        proptest,
        sample::select,
        test_runner::Config,
    };

    use super::*;

    fn value() -> impl Strategy<Value = Bson> {
        let leaf = prop_oneof![
            Just(Bson::Null),
            any::<bool>().prop_map(Bson::Boolean),
            any::<i32>().prop_map(Bson::Int32),
            any::<i64>().prop_map(Bson::Int64),
            any::<f64>().prop_map(Bson::Double),
            any::<i64>().prop_map(|at| Bson::DateTime(DateTime::from_millis(at))),
            "\\PC{0,12}".prop_map(Bson::String),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            let names = select(vec!["format", "fence", "holders", "line", "latch", "x"]);
            let document = vec((names, inner.clone()), 0..4).prop_map(|fields| {
                Bson::Document(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            });
            prop_oneof![vec(inner, 0..4).prop_map(Bson::Array), document]
        })
    }

    /// A document with what we look for, and with anything in it; sometimes a record of ours with one field changed.
    fn document() -> impl Strategy<Value = Document> {
        let ours = written(&Record::new(7)).unwrap();
        let fields = select(vec!["format", "fence", "holders", "line", "latch", "permits"]);
        let changed = (fields, value()).prop_map(move |(field, value)| {
            let mut record = ours.clone();
            record.insert(field, value);
            Bson::Document(record)
        });
        let now = prop_oneof![value(), any::<i64>().prop_map(|at| Bson::DateTime(DateTime::from_millis(at)))];
        let version = prop_oneof![3 => Just(Bson::String("v".to_owned())), 1 => value()];
        let record = prop_oneof![value(), changed];
        (version, record, now)
            .prop_map(|(version, record, now)| doc! { "version": version, "record": record, "now": now })
    }

    proptest! {
        #![proptest_config(Config { cases: 2000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_document_makes_it_panic(document in document()) {
            if let Ok(seen) = Seen::read(&document) {
                let _ = Seen::nothing(seen.now);
                drop(swap("name", seen.version.as_deref(), (&seen.record, &[]), "w"));
            }
        }
    }

    #[test]
    fn a_time_beyond_all_bounds_is_the_last() {
        let document = doc! { "now": DateTime::from_millis(i64::MAX) };
        assert_eq!(time(&document).unwrap(), Moment(u64::MAX));
    }
}
