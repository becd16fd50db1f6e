//! What stands in the way of a claim, read together with a transaction that did not win, and judged by pure functions.

use leasehold_core::{
    Operation, Result,
    backend::{ClaimSpec, Kind, Mode, record::Record},
};

use crate::{
    bell::Sight,
    entry::Entry,
    error::misfit,
    names::{self, Folder, Stretch},
    proto::{Compare, KeyValue, RequestOp, TxnResponse},
    txn,
};

/// One who holds.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) key: Vec<u8>,
    pub(crate) fence: i64,
    pub(crate) lease: i64,
    pub(crate) entry: Entry,
}

/// All that a claim has to know of its name.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) revision: i64,
    pub(crate) holders: Vec<Held>,
    latch: Option<u64>,
    /// Keys of those in line before us, and when they came; the last first. Only the last if we do not stand there.
    line: Vec<(Vec<u8>, i64)>,
    /// Who waits before us outside of the line, if that matters to us.
    before: Option<Vec<u8>>,
    /// How many wait, ourselves included if we do.
    pub(crate) waiters: usize,
    /// How many stand in line and let nobody after them pass.
    blocking: usize,
}

/// What a scene means for a claim.
#[derive(Debug)]
pub(crate) enum Verdict<'a> {
    /// It holds already.
    Own(&'a Held),
    /// The name is in use as something else.
    Conflict(Kind),
    /// Nothing is in its way.
    Free,
    /// Something is, and this is worth watching.
    Busy(Sight),
}

/// What to read; `place` is when we came, or zero.
pub(crate) fn acts(folder: &Folder, spec: &ClaimSpec, place: i64) -> Vec<RequestOp> {
    let before = (place - 1).max(0);
    let line = match (spec.fair, spec.mode) {
        (true, _) => txn::latest(&folder.line(), 0, before),
        (false, Mode::Shared) => txn::latest(&folder.blocking_line(), 1, 0),
        (false, _) => txn::latest(&folder.line(), 1, 0),
    };
    vec![
        txn::list(&folder.holders()),
        txn::get(folder.latch()),
        line,
        txn::latest(&folder.crowd(), 1, before),
        txn::count(&folder.outside()),
        txn::count(&folder.line()),
        txn::count(&folder.blocking_line()),
    ]
}

impl Scene {
    /// From the answer to a transaction whose acts began with ours.
    pub(crate) fn read(answer: &TxnResponse) -> Result<Self> {
        let range = |at| answer.range(at).ok_or_else(|| misfit(Operation::Acquire, "too few parts"));
        let mut holders = range(0)?.kvs.iter().map(held).collect::<Result<Vec<Held>>>()?;
        holders.sort_unstable_by_key(|held| held.fence);
        let latch = answer.first(1).map(count_of).transpose()?;
        let came = |kv: &KeyValue| (kv.key.clone(), kv.create_revision);
        let line = range(2)?.kvs.iter().map(came).collect();
        let before = answer.first(3).map(|kv| kv.key.clone());
        let count = |at| range(at).map(|range| range.count.max(0).cast_unsigned() as usize);
        let (outside, in_line, blocking) = (count(4)?, count(5)?, count(6)?);
        let (revision, waiters) = (answer.revision(), outside + in_line);
        Ok(Self { revision, holders, latch, line, before, waiters, blocking })
    }

    /// What this means for a claim that holds under `own` once it holds.
    pub(crate) fn judge(&self, folder: &Folder, spec: &ClaimSpec, own: &[u8]) -> Verdict<'_> {
        if let Some(held) = self.holders.iter().find(|held| held.key == own) {
            return Verdict::Own(held);
        }
        if let Some(kind) = self.conflict(spec.mode) {
            return Verdict::Conflict(kind);
        }
        let blocked = if spec.mode == Mode::Open {
            self.latch.map(|_| Sight::Key(folder.latch()))
        } else {
            self.line_before(spec).or_else(|| self.holder_before(folder, spec.mode))
        };
        match blocked {
            None => Verdict::Free,
            // Only the first of the crowd watches what is in the way of all; the others watch who is before them.
            Some(_) if spec.mode == Mode::Exclusive && !spec.fair && self.before.is_some() => {
                Verdict::Busy(Sight::Key(self.before.clone().unwrap_or_default()))
            }
            Some(sight) => Verdict::Busy(sight),
        }
    }

    /// Under what conditions nothing is in the way still, if it was not when this was read.
    pub(crate) fn still(&self, folder: &Folder, spec: &ClaimSpec, place: i64) -> Vec<Compare> {
        let line = line_for(folder, spec.mode);
        let stands_there = spec.fair && place > 0 && (spec.mode != Mode::Shared || self.blocking > 0);
        vec![
            txn::no_key(&folder.latch()),
            txn::unchanged(&folder.holders(), self.revision),
            if stands_there { txn::none_before(&line, place) } else { txn::absent(&line) },
        ]
    }

    /// How many are likely to get it before us.
    pub(crate) fn ahead(&self, spec: &ClaimSpec) -> usize {
        match spec.mode {
            _ if spec.fair => self.line.len(),
            Mode::Exclusive if self.before.is_some() => self.waiters,
            _ => 0,
        }
    }

    /// Our place in line, counted from one.
    pub(crate) fn place(&self) -> usize {
        self.line.len() + 1
    }

    fn conflict(&self, mode: Mode) -> Option<Kind> {
        let held = self.holders.first().map(|held| match held.entry.mode {
            Mode::Permits { of, .. } => Kind::Semaphore { of: of.get() },
            _ => Kind::Lock,
        });
        let found = self.latch.map(|count| Kind::Latch { count }).or(held)?;
        let fits = match (found, mode) {
            (Kind::Lock, Mode::Exclusive | Mode::Shared) | (Kind::Latch { .. }, Mode::Open) => true,
            (Kind::Semaphore { of: found }, Mode::Permits { of, .. }) => found == of.get(),
            _ => false,
        };
        (!fits).then_some(found)
    }

    /// The last in line before us who lets us not pass.
    fn line_before(&self, spec: &ClaimSpec) -> Option<Sight> {
        let blocks = |key: &[u8]| {
            spec.mode != Mode::Shared || names::parse(key).is_some_and(|(_, part, _)| part == "fx")
        };
        self.line.iter().find(|(key, _)| blocks(key)).map(|(key, _)| Sight::Key(key.clone()))
    }

    fn holder_before(&self, folder: &Folder, mode: Mode) -> Option<Sight> {
        let key = |held: &Held| Sight::Key(held.key.clone());
        match mode {
            Mode::Shared => self.holders.iter().rfind(|held| held.entry.mode != Mode::Shared).map(key),
            Mode::Permits { take, of } => {
                let out: u64 = self.holders.iter().map(|held| permits(held.entry.mode)).sum();
                let enough = out + u64::from(take.get()) <= u64::from(of.get());
                (!enough).then(|| Sight::Leaving(folder.excluding()))
            }
            _ => self.holders.last().map(key),
        }
    }
}

/// Under what conditions nothing at all is in the way: what a first try asks for, without having read anything.
pub(crate) fn nobody(folder: &Folder, spec: &ClaimSpec, place: i64) -> Vec<Compare> {
    let line = line_for(folder, spec.mode);
    let holders = if spec.mode == Mode::Shared { folder.excluding() } else { folder.holders() };
    let mut conditions = vec![txn::no_key(&folder.latch()), txn::absent(&holders)];
    match spec.mode {
        Mode::Open => {}
        // One in line is there itself; one who shares has a line of its own.
        Mode::Exclusive | Mode::Permits { .. } if place > 0 && spec.fair => {
            conditions.push(txn::none_before(&line, place));
        }
        _ => conditions.push(txn::absent(&line)),
    }
    conditions
}

/// Those in line who would let one of this mode not pass.
fn line_for(folder: &Folder, mode: Mode) -> Stretch {
    if mode == Mode::Shared { folder.blocking_line() } else { folder.line() }
}

/// Nobody may be overlooked: what cannot be read is an error, never nothing.
pub(crate) fn held(kv: &KeyValue) -> Result<Held> {
    let entry = Entry::decode(&kv.value)?;
    Ok(Held { key: kv.key.clone(), fence: kv.create_revision, lease: kv.lease, entry })
}

/// The count of a latch as it is kept.
pub(crate) fn count_of(kv: &KeyValue) -> Result<u64> {
    match Record::decode(&String::from_utf8_lossy(&kv.value))?.kind() {
        Some(Kind::Latch { count }) => Ok(count),
        _ => Err(misfit(Operation::Latch, "a latch without a count")),
    }
}

fn permits(mode: Mode) -> u64 {
    match mode {
        Mode::Permits { take, .. } => u64::from(take.get()),
        _ => 0,
    }
}
