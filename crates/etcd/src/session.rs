//! Leases: what every trace of ours in etcd hangs on, and goes with.
//!
//! Each acquisition has a lease of its own, because etcd's leases have one length each and end as a whole. A lease that
//! is free again is kept for the next acquisition of the same length, so that an acquire costs one round trip and not two.
//! What counts is what was granted, from before it was asked for. Nothing here renews by itself.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use leasehold_core::{
    ClaimId,
    time::{Clock, Instant},
};

use crate::{
    error::{Fault, Refusal},
    proto::{
        LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveResponse, LeaseRequest, LeaseRevokeResponse,
        LeaseTimeToLiveResponse,
    },
    wire::{Wire, path},
};

/// The most leases kept for later, of one length.
const SPARE: usize = 64;

/// One lease at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) id: i64,
    /// How long it lasts, by what the server granted.
    pub(crate) ttl: Duration,
    /// How many seconds it was asked for.
    asked: u64,
    /// When it was last asked for, or to go on.
    since: Instant,
}

impl Lease {
    /// How long it lasts for sure.
    pub(crate) fn left(&self) -> Duration {
        self.ttl.saturating_sub(self.since.until(Clock::boot().now()))
    }

    /// Whether so little has passed of it that it need not be prolonged to be used.
    pub(crate) fn is_fresh(&self) -> bool {
        self.left() >= self.ttl * 3 / 4
    }

    /// The same lease, asked at this time to go on and answered so, if that answer counts beside one of this term.
    pub(crate) fn prolonged(self, since: Instant, answer: Prolonged, term: u64) -> Self {
        let counts = answer.counts_beside(term) && answer.ttl >= self.ttl;
        if counts { Self { since: self.since.max(since), ..self } } else { self }
    }
}

/// What became of a lease that was asked to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prolonged {
    /// How long it lasts from when it was asked; zero if it is over.
    pub(crate) ttl: Duration,
    /// The term of who answered. One that was replaced as leader and does not know it yet may answer too: its word counts
    /// only if an answer that needs a majority, asked for at the same time, is not of a later term.
    pub(crate) term: u64,
}

impl Prolonged {
    pub(crate) fn counts_beside(self, term: u64) -> bool {
        self.term >= term
    }
}

/// The leases of one store.
#[derive(Debug, Default)]
pub(crate) struct Session {
    leases: Mutex<Leases>,
}

#[derive(Debug, Default)]
struct Leases {
    /// Free, by their length in seconds as it was asked for.
    spare: HashMap<u64, Vec<Lease>>,
    /// In use by acquisitions that hold.
    held: HashMap<ClaimId, Lease>,
}

impl Session {
    /// A lease of this length that nobody uses: one that is there, or a new one.
    pub(crate) async fn lease(&self, wire: &Wire, ttl: Duration) -> Result<Lease, Fault> {
        let spare = self.leases().spare.get_mut(&seconds(ttl)).and_then(Vec::pop);
        // One that is nearly over is not worth asking about.
        if let Some(lease) = spare.filter(|lease| lease.left() > lease.ttl / 2) {
            return Ok(lease);
        }
        grant(wire, ttl).await
    }

    /// Keeps a lease for later: nothing hangs on it any more.
    pub(crate) fn give_back(&self, lease: Lease) {
        let mut leases = self.leases();
        let spare = leases.spare.entry(lease.asked).or_default();
        spare.retain(|spare| spare.left() > spare.ttl / 2 && spare.id != lease.id);
        if spare.len() < SPARE {
            spare.push(lease);
        }
    }

    /// This acquisition holds by this lease.
    pub(crate) fn holds(&self, id: ClaimId, lease: Lease) {
        self.leases().held.insert(id, lease);
    }

    /// The lease by which this acquisition holds, if it is one of ours.
    pub(crate) fn held(&self, id: ClaimId) -> Option<Lease> {
        self.leases().held.get(&id).copied()
    }

    /// Takes note that the lease of an acquisition is this by now, unless it holds no more.
    pub(crate) fn update(&self, id: ClaimId, lease: Lease) {
        if let Some(held) = self.leases().held.get_mut(&id) {
            *held = lease;
        }
    }

    /// This acquisition holds no more.
    pub(crate) fn forget(&self, id: ClaimId) -> Option<Lease> {
        self.leases().held.remove(&id)
    }

    /// All spare leases, kept no more.
    pub(crate) fn take_spare(&self) -> Vec<Lease> {
        std::mem::take(&mut self.leases().spare).into_values().flatten().collect()
    }

    fn leases(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A new lease, under an id of our own.
pub(crate) async fn grant(wire: &Wire, ttl: Duration) -> Result<Lease, Fault> {
    let since = Clock::boot().now();
    let asked = seconds(ttl);
    let request = LeaseGrantRequest { ttl: asked.cast_signed(), id: random_id() };
    let granted: LeaseGrantResponse = wire.call(path::GRANT, request).await?;
    let ttl = Duration::from_secs(granted.ttl.max(0).cast_unsigned());
    Ok(Lease { id: granted.id, ttl, asked, since })
}

/// Ends a lease and all that hangs on it. One that is over already is fine.
pub(crate) async fn revoke(wire: &Wire, id: i64) -> Result<(), Fault> {
    match wire.call::<_, LeaseRevokeResponse>(path::REVOKE, LeaseRequest { id }).await {
        Err(fault) if fault.refusal() == Some(Refusal::NoLease) => Ok(()),
        answer => answer.map(drop),
    }
}

/// Asks leases to go on, one answer each in the same order.
pub(crate) async fn prolong(wire: &Wire, ids: &[i64]) -> Result<Vec<Prolonged>, Fault> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let requests = ids.iter().map(|id| LeaseRequest { id: *id }).collect();
    let answers: Vec<LeaseKeepAliveResponse> = wire.exchange(path::KEEP_ALIVE, requests).await?;
    let prolonged = |answer: &LeaseKeepAliveResponse| Prolonged {
        ttl: Duration::from_secs(answer.ttl.max(0).cast_unsigned()),
        term: answer.header.map_or(0, |header| header.raft_term),
    };
    let in_order = ids.iter().zip(&answers).all(|(id, answer)| *id == answer.id);
    if in_order {
        Ok(answers.iter().map(prolonged).collect())
    } else {
        Err(Fault::Unknown("leases were answered out of order".to_owned()))
    }
}

/// What the server says of a lease that is not known to be ours: `None` if it is over.
pub(crate) async fn look(wire: &Wire, id: i64) -> Result<Option<Lease>, Fault> {
    let now = Clock::boot().now();
    let answer: LeaseTimeToLiveResponse = wire.call(path::TIME_TO_LIVE, LeaseRequest { id }).await?;
    let (Ok(left), Ok(granted)) = (u64::try_from(answer.ttl), u64::try_from(answer.granted)) else {
        return Ok(None);
    };
    let (left, ttl) = (Duration::from_secs(left), Duration::from_secs(granted));
    // As if it had begun so long ago that this is left.
    let since =
        Instant::from_nanos(now.as_nanos().saturating_sub((ttl.saturating_sub(left)).as_nanos() as u64));
    Ok(Some(Lease { id, ttl, asked: granted, since }))
}

/// Whole seconds, which is all that etcd counts in, and never less than was asked for.
fn seconds(ttl: Duration) -> u64 {
    ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0)
}

/// An id that nobody else has: positive, as zero lets the server choose.
fn random_id() -> i64 {
    let mut bytes = [0; 8];
    // Without randomness the server chooses.
    let filled = getrandom::fill(&mut bytes).is_ok();
    if filled { i64::from_le_bytes(bytes) & i64::MAX } else { 0 }
}
