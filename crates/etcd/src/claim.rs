//! One contender on etcd.
//!
//! A try is one transaction: if nobody is in the way, our key is created under our lease, else what is in the way is read.
//! The server refuses a key under a lease that is over, so nobody wins who could not hold. The fence is the revision at
//! which the key came to be. Who waits has a key of its own, watches one other key and tries again when that one changes:
//! the last holder if it is the first to wait, else whoever is before it.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::join_all;
use leasehold_core::{
    ClaimId, Error, ErrorKind, Operation, Result,
    backend::{Attempt, Broken, Busy, Claim, ClaimSpec, Grant, Holder, Holds, Life, Mode, Release, Renewal},
    planted::{Bug, planted},
    time::Clock,
};

use crate::{
    bell::{Bell, Ring, Sight},
    entry::Entry,
    error::{Fault, Refusal},
    names::{self, Folder},
    proto::{Compare, KeyValue, RequestOp, Response, TxnRequest, TxnResponse},
    scene::{self, Held, Scene, Verdict},
    session::{self, Lease},
    store::Shared,
    txn,
};

/// How often a try begins anew because others were quicker, or because the lease was over.
const ROUNDS: usize = 32;

/// The most holders of whom it is asked how long they still have.
const NAMED: usize = 16;

/// One contender.
#[derive(Debug)]
pub(crate) struct EtcdClaim {
    store: Arc<Shared>,
    spec: Arc<ClaimSpec>,
    folder: Folder,
    /// While it does not hold; then the session has it.
    lease: Option<Lease>,
    /// It has begun to wait: from then on it has a key to wait under.
    waits: bool,
    /// When it began to wait, as a revision; zero before that.
    place: i64,
    /// What to watch, and up to which revision all is known.
    sight: Option<(Sight, i64)>,
    bell: Option<Bell>,
    /// As it was last written.
    entry: Entry,
    trace: Trace,
}

/// What of this claim may be in etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trace {
    None,
    Entry,
    /// The answer to an attempt was lost: the attempt may even arrive after our release.
    Unknown,
}

/// How one transaction of a try ended.
enum Round {
    Done(Attempt),
    /// Under these conditions once more.
    Again(Vec<Compare>),
}

impl EtcdClaim {
    pub(crate) fn new(store: Arc<Shared>, spec: Arc<ClaimSpec>) -> Self {
        let folder = Folder::of(&spec.key);
        let (lease, sight, bell, entry) = (None, None, None, Entry::now(&spec));
        Self { store, spec, folder, lease, waits: false, place: 0, sight, bell, entry, trace: Trace::None }
    }

    fn own(&self) -> Vec<u8> {
        self.folder.held(self.spec.mode, self.spec.id)
    }

    async fn contend(&mut self) -> Result<Attempt> {
        let mut conditions = scene::nobody(&self.folder, &self.spec, self.place);
        for _ in 0..ROUNDS {
            match self.round(conditions).await? {
                Round::Done(attempt) => return Ok(attempt),
                Round::Again(next) => conditions = next,
            }
        }
        let message = "too many change this name at the same time; try again";
        Err(Error::new(ErrorKind::Unavailable, Operation::Acquire, message))
    }

    async fn round(&mut self, conditions: Vec<Compare>) -> Result<Round> {
        let refused = |fault: Fault| fault.into_error(Operation::Acquire);
        let mut lease = self.lease().await.map_err(refused)?;
        self.entry = Entry::now(&self.spec);
        let request = self.request(conditions, lease.map_or(0, |lease| lease.id));
        let sent = Clock::boot().now();
        let stale: Vec<i64> = lease.iter().filter(|lease| !lease.is_fresh()).map(|lease| lease.id).collect();
        let wire = &self.store.wire;
        let (answer, prolonged) = tokio::join!(wire.txn(request), session::prolong(wire, &stale));
        let answer = match answer {
            Err(fault) if fault.refusal() == Some(Refusal::NoLease) => {
                if planted(Bug::WaiterOutlives) && self.place > 0 {
                    return Ok(Round::Done(Attempt::Granted(self.won(self.place, None))));
                }
                (self.lease, self.place) = (None, 0);
                return Ok(Round::Again(scene::nobody(&self.folder, &self.spec, 0)));
            }
            answer => answer.map_err(refused)?,
        };
        if let (Some(lease), Ok([prolonged])) = (&mut lease, prolonged.as_deref()) {
            *lease = lease.prolonged(sent, *prolonged, answer.term());
            self.lease = Some(*lease);
        }
        if answer.succeeded {
            return Ok(Round::Done(Attempt::Granted(self.won(answer.revision(), lease))));
        }
        self.lost(&answer).await
    }

    /// The lease to try with: waiting for a latch leaves nothing behind but the wait.
    async fn lease(&mut self) -> Result<Option<Lease>, Fault> {
        if self.lease.is_none() && (self.spec.mode != Mode::Open || self.waits) {
            self.lease = Some(self.store.session.lease(&self.store.wire, self.spec.ttl).await?);
        }
        Ok(self.lease)
    }

    fn request(&self, compare: Vec<Compare>, lease: i64) -> TxnRequest {
        let entry = self.entry.encode();
        let mut success = Vec::new();
        if self.spec.mode != Mode::Open {
            success.push(txn::put(self.own(), entry.clone(), lease));
        }
        let mut failure = scene::acts(&self.folder, &self.spec, self.place);
        if self.waits {
            let waiting = self.folder.waiting(&self.spec);
            success.push(txn::delete(waiting.clone()));
            failure.push(join(waiting, &self.own(), entry, lease));
        }
        TxnRequest { compare, success, failure }
    }

    /// Takes note of a lock that was won at this revision.
    fn won(&mut self, revision: i64, lease: Option<Lease>) -> Grant {
        let ttl = self.spec.ttl;
        if self.spec.mode == Mode::Open {
            return Grant { fence: 0, granted: ttl };
        }
        let left = lease.map_or(ttl, |lease| lease.left());
        if let Some(lease) = lease.filter(|_| self.spec.life == Life::Session) {
            self.store.session.holds(self.spec.id, lease);
            self.lease = None;
        }
        Grant { fence: revision.cast_unsigned(), granted: left.min(ttl) }
    }

    /// Looks at what was in the way.
    async fn lost(&mut self, answer: &TxnResponse) -> Result<Round> {
        let scene = Scene::read(answer)?;
        let joining = answer.responses.last().and_then(|op| op.response.as_ref());
        let joined = matches!(joining, Some(Response::Txn(joining)) if joining.succeeded);
        if joined {
            self.place = answer.revision();
        }
        match scene.judge(&self.folder, &self.spec, &self.own()) {
            Verdict::Own(held) => self.adopt(held).await.map(|grant| Round::Done(Attempt::Granted(grant))),
            Verdict::Free => Ok(Round::Again(scene.still(&self.folder, &self.spec, self.place))),
            Verdict::Busy(sight) => {
                self.sight = Some((sight, scene.revision));
                Ok(Round::Done(Attempt::Busy(self.busy(&scene, joined).await)))
            }
            Verdict::Conflict(kind) => {
                let wanted = match self.spec.mode {
                    Mode::Permits { of, .. } => format!("a semaphore of {of} permits"),
                    Mode::Open => "a latch".to_owned(),
                    _ => "a lock".to_owned(),
                };
                Err(Error::conflict(Operation::Acquire, kind, &wanted))
            }
        }
    }

    /// An earlier try of this claim won, and its answer was lost.
    async fn adopt(&mut self, held: &Held) -> Result<Grant> {
        let known = self.store.session.held(self.spec.id).filter(|lease| lease.id == held.lease);
        let refused = |fault: Fault| fault.into_error(Operation::Acquire);
        let mut lease = known.or(self.lease.filter(|lease| lease.id == held.lease));
        if lease.is_none() {
            lease = session::look(&self.store.wire, held.lease).await.map_err(refused)?;
        }
        let over = || refused(Fault::Refused(Refusal::NoLease, "it ran out".to_owned()));
        let lease = lease.ok_or_else(over)?;
        Ok(self.won(held.fence, Some(lease)))
    }

    /// What to tell; those who have joined just now were not counted yet.
    async fn busy(&self, scene: &Scene, joined: bool) -> Busy {
        let stands = self.waits && self.place > 0;
        let mut busy = Busy::default();
        busy.holders = holders(&self.store, &scene.holders).await;
        busy.place = (self.spec.fair && stands).then(|| scene.place());
        busy.waiters = scene.waiters.saturating_sub(usize::from(stands && !joined));
        busy.ahead = scene.ahead(&self.spec);
        // A place in line lasts as long as the lease: a look now and then keeps it.
        busy.retry_after = Some(self.lease.map_or(self.spec.ttl, |lease| lease.ttl) / 3);
        busy
    }

    async fn let_go(&mut self, lease: Option<Lease>) -> Result<Release, Fault> {
        let (deleted, broken) = remove(&self.store, &self.folder, self.spec.mode, self.spec.id).await?;
        match lease {
            // What is still on its way finds no lease to hang on.
            Some(lease) if self.trace == Trace::Unknown => {
                session::revoke(&self.store.wire, lease.id).await?;
            }
            Some(lease) if deleted => self.store.session.give_back(lease),
            _ => {}
        }
        Ok(if deleted { Release::Released } else { Release::Gone(broken) })
    }
}

/// The longest pause between two looks.
pub(crate) const POLL: std::time::Duration = std::time::Duration::from_secs(5);

#[async_trait]
impl Claim for EtcdClaim {
    async fn attempt(&mut self) -> Result<Attempt> {
        self.bell = None;
        let before = std::mem::replace(&mut self.trace, Trace::Unknown);
        let attempt = self.contend().await;
        let unknown = matches!(&attempt, Err(error) if error.kind() == ErrorKind::Indeterminate);
        self.trace = match (&attempt, before) {
            (_, Trace::Unknown) => Trace::Unknown,
            _ if unknown => Trace::Unknown,
            // What was found out by this try is known; what an error says nothing about is as it was.
            (Ok(Attempt::Granted(_)), _) if self.spec.mode == Mode::Open => Trace::None,
            (Ok(Attempt::Granted(_)), _) => Trace::Entry,
            _ if self.waits => Trace::Entry,
            _ => before,
        };
        attempt
    }

    async fn changed(&mut self) -> Result<()> {
        if !self.waits {
            self.waits = true;
            if !planted(Bug::SubscribeAfterCheck) {
                return Ok(());
            }
        }
        if self.bell.is_none() {
            // Nothing is watched twice: after this the next try says what is worth watching.
            let Some((sight, revision)) = self.sight.take() else { return Ok(()) };
            self.bell = Some(self.store.belfry.watch(&sight, revision));
        }
        let Some(bell) = &mut self.bell else { return Ok(()) };
        let ring = bell.rung().await;
        self.bell = None;
        match ring {
            Ring::Look => Ok(()),
            Ring::Deaf => {
                let message =
                    "the server could not be asked to tell of changes; looking now and then instead";
                Err(Error::new(ErrorKind::Unavailable, Operation::Acquire, message))
            }
        }
    }

    async fn recount(&mut self, holds: Holds) -> Result<Renewal> {
        let (own, id) = (self.own(), self.spec.id);
        let entry = self.entry.clone().holding(holds).encode();
        let request = TxnRequest {
            compare: vec![txn::exists(&own)],
            success: vec![txn::rewrite(own, entry)],
            failure: vec![txn::get(names::broken(id))],
        };
        let answer = self.store.wire.txn(request).await;
        let answer = answer.map_err(|fault| fault.into_error(Operation::Reenter))?;
        if !answer.succeeded {
            return Ok(Renewal::Lost(answer.first(0).and_then(broken)));
        }
        let lease = self.store.session.held(id).or(self.lease);
        Ok(Renewal::Renewed { granted: lease.map_or(self.spec.ttl, |lease| lease.left()).min(self.spec.ttl) })
    }

    async fn release(&mut self) -> Result<Release> {
        (self.bell, self.sight) = (None, None);
        if self.trace == Trace::None {
            return Ok(Release::Released);
        }
        let lease = self.store.session.forget(self.spec.id).or(self.lease.take());
        match self.let_go(lease).await {
            Ok(released) => {
                self.trace = Trace::None;
                Ok(released)
            }
            Err(fault) => {
                self.lease = lease;
                Err(fault.into_error(Operation::Release))
            }
        }
    }
}

impl Drop for EtcdClaim {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take()
            && self.trace == Trace::None
        {
            self.store.session.give_back(lease);
        }
    }
}

/// Waits under this key, unless it is there already, or an earlier try won and its answer was lost.
fn join(waiting: Vec<u8>, own: &[u8], entry: Vec<u8>, lease: i64) -> RequestOp {
    txn::nested(TxnRequest {
        compare: vec![txn::no_key(&waiting), txn::no_key(own)],
        success: vec![txn::put(waiting, entry, lease)],
        failure: Vec::new(),
    })
}

/// Removes every trace of an acquisition. Says whether there was one, and who broke it if somebody did.
pub(crate) async fn remove(
    store: &Shared,
    folder: &Folder,
    mode: Mode,
    id: ClaimId,
) -> Result<(bool, Option<Broken>), Fault> {
    let mut success = vec![txn::get(names::broken(id))];
    success.extend(folder.places(mode, id).into_iter().map(txn::delete));
    let answer = store.wire.txn(TxnRequest { success, ..TxnRequest::default() }).await?;
    Ok((answer.deleted() > 0, answer.first(0).and_then(broken)))
}

/// Who broke an acquisition, as it was written down.
pub(crate) fn broken(kv: &KeyValue) -> Option<Broken> {
    serde_json::from_slice(&kv.value).ok()
}

/// Those who hold, with how long they still have.
pub(crate) async fn holders(store: &Shared, held: &[Held]) -> Vec<Holder> {
    let remaining = held.iter().take(NAMED).map(|held| session::look(&store.wire, held.lease));
    let remaining = join_all(remaining).await.into_iter().map(Some).chain(std::iter::repeat_with(|| None));
    let shown = held.iter().zip(remaining).filter_map(|(held, remaining)| {
        let left = match remaining {
            Some(Ok(Some(lease))) => lease.left(),
            _ => std::time::Duration::ZERO,
        };
        let (_, _, id) = names::parse(&held.key)?;
        Some(held.entry.holder(id.parse().ok()?, held.fence.cast_unsigned(), left))
    });
    shown.collect()
}
