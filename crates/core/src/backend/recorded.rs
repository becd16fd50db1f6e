//! Every record store is a backend: this file makes it one.
//!
//! A [`RecordStore`] knows how to apply [`Step`]s to the [`Record`](super::record::Record) of a name, atomically,
//! and how to wake those whose chances rose. [`Recorded`] turns it into a [`Backend`]; the claim, batching of
//! renewals, latches and inspection are written here once.

use std::{future::Future, sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{
    Attempt, Backend, BreakOutcome, Broken, Cell, CellPage, CellWrite, Claim, ClaimSpec, Expect, Finding,
    Holds, LatchStep, LockPage, LockState, Mode, RateAnswer, RateStep, Release, Renew, Renewal, StoreInfo,
    record::{Answer, Step},
};
use crate::{
    error::{Error, ErrorKind, Operation, Result},
    id::ClaimId,
    key::Key,
    planted::{Bug, planted},
};

/// A store that keeps one record per name.
///
/// Methods are those of [`Backend`] where they have the same name, with the same promises.
pub trait RecordStore: std::fmt::Debug + Send + Sync + 'static {
    /// What wakes a claim of this store.
    type Bell: Bell;

    /// See [`Backend::info`].
    fn info(&self) -> &StoreInfo;

    /// Applies one step to the record of `key` in one atomic act, keeps the record if it changed, and rings the
    /// bells of those to wake after that.
    fn apply(&self, key: &Key, step: Step) -> impl Future<Output = Result<Answer>> + Send;

    /// The same on the spot, by a store that waits for nothing because it is within this process; the step comes back
    /// from any other.
    fn apply_now(&self, key: &Key, step: Step) -> Result<Result<Answer>, Step> {
        let _ = key;
        Err(step)
    }

    /// Applies several steps, one answer each in the same order. A store that can do many in one transaction
    /// should; one step's error must not touch another's.
    fn apply_all(&self, steps: Vec<(Key, Step)>) -> impl Future<Output = Vec<Result<Answer>>> + Send {
        async move {
            let mut answers = Vec::with_capacity(steps.len());
            for (key, step) in steps {
                answers.push(self.apply(&key, step).await);
            }
            answers
        }
    }

    /// Arms a bell for this acquisition: a wake-up meant for it from now on completes the next
    /// [`Bell::rung`]. No I/O.
    fn bell(&self, key: &Key, id: ClaimId) -> Self::Bell;

    /// See [`Backend::rate`].
    fn rate(&self, key: &Key, step: RateStep) -> impl Future<Output = Result<RateAnswer>> + Send {
        let _ = (key, step);
        std::future::ready(Err(self.info().without_limiters()))
    }

    /// See [`Backend::inspect`].
    fn inspect(&self, key: &Key) -> impl Future<Output = Result<Option<LockState>>> + Send;

    /// See [`Backend::list`].
    fn list(
        &self,
        prefix: &str,
        cursor: Option<&str>,
        limit: usize,
    ) -> impl Future<Output = Result<LockPage>> + Send;

    /// See [`Backend::read_cell`].
    fn read_cell(&self, name: &str) -> impl Future<Output = Result<Option<Cell>>> + Send;

    /// See [`Backend::write_cell`].
    fn write_cell(
        &self,
        name: &str,
        expect: Expect,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> impl Future<Output = Result<CellWrite>> + Send;

    /// See [`Backend::list_cells`].
    fn list_cells(
        &self,
        prefix: &str,
        cursor: Option<&str>,
        limit: usize,
    ) -> impl Future<Output = Result<CellPage>> + Send;

    /// See [`Backend::wall_clock`].
    fn wall_clock(&self) -> impl Future<Output = Result<Option<Duration>>> + Send {
        std::future::ready(Ok(None))
    }

    /// See [`Backend::diagnose`]. Names make no difference to a record.
    fn diagnose(&self) -> impl Future<Output = Result<Vec<Finding>>> + Send {
        std::future::ready(Ok(Vec::new()))
    }

    /// See [`Backend::session`].
    #[cfg(unix)]
    fn session(&self) -> Option<std::os::fd::OwnedFd> {
        None
    }

    /// See [`Backend::close`].
    fn close(&self) -> impl Future<Output = Result<()>> + Send;
}

/// What wakes a waiting claim.
pub trait Bell: std::fmt::Debug + Send + 'static {
    /// Completes once the bell was rung since it was armed or since the last time this completed.
    /// A store without wake-ups never completes: its claims try again at the store's polling pause.
    fn rung(&mut self) -> impl Future<Output = ()> + Send;
}

/// A record store, as a backend.
#[derive(Debug)]
pub struct Recorded<S>(Arc<S>);

impl<S> Clone for Recorded<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: RecordStore> Recorded<S> {
    /// Makes a backend of a record store.
    pub fn new(store: S) -> Self {
        Self(Arc::new(store))
    }

    /// The store itself.
    pub fn store(&self) -> &S {
        &self.0
    }
}

#[async_trait]
impl<S: RecordStore> Backend for Recorded<S> {
    fn info(&self) -> &StoreInfo {
        self.0.info()
    }

    fn claim(&self, spec: Arc<ClaimSpec>) -> Box<dyn Claim> {
        Box::new(RecordClaim { store: self.0.clone(), spec, bell: None, trace: Trace::None })
    }

    async fn renew(&self, batch: &[Renew]) -> Vec<Result<Renewal>> {
        let steps = batch.iter().map(|renew| (renew.key.clone(), Step::Renew(renew.clone()))).collect();
        let answers = self.0.apply_all(steps).await;
        answers.into_iter().map(|answer| answer.and_then(renewal)).collect()
    }

    async fn release(&self, key: &Key, id: ClaimId, _mode: Mode) -> Result<Release> {
        self.0.apply(key, Step::Release { id, barrier: false }).await.and_then(release)
    }

    async fn latch(&self, key: &Key, step: LatchStep) -> Result<u64> {
        match self.0.apply(key, Step::Latch(step)).await? {
            Answer::Count(count) => Ok(count),
            other => Err(misfit(&other)),
        }
    }

    async fn rate(&self, key: &Key, step: RateStep) -> Result<RateAnswer> {
        self.0.rate(key, step).await
    }

    async fn inspect(&self, key: &Key) -> Result<Option<LockState>> {
        self.0.inspect(key).await
    }

    async fn list(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage> {
        self.0.list(prefix, cursor, limit).await
    }

    async fn break_hold(&self, key: &Key, id: ClaimId, broken: &Broken) -> Result<BreakOutcome> {
        match self.0.apply(key, Step::Break { id, broken: broken.clone() }).await? {
            Answer::Break(outcome) => Ok(outcome),
            other => Err(misfit(&other)),
        }
    }

    async fn read_cell(&self, name: &str) -> Result<Option<Cell>> {
        self.0.read_cell(name).await
    }

    async fn write_cell(
        &self,
        name: &str,
        expect: Expect,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<CellWrite> {
        self.0.write_cell(name, expect, value, ttl).await
    }

    async fn list_cells(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<CellPage> {
        self.0.list_cells(prefix, cursor, limit).await
    }

    async fn wall_clock(&self) -> Result<Option<Duration>> {
        self.0.wall_clock().await
    }

    async fn diagnose(&self, _prefix: &str) -> Result<Vec<Finding>> {
        self.0.diagnose().await
    }

    #[cfg(unix)]
    fn session(&self) -> Option<std::os::fd::OwnedFd> {
        self.0.session()
    }

    async fn close(&self) -> Result<()> {
        self.0.close().await
    }
}

/// One contender for a record.
#[derive(Debug)]
struct RecordClaim<S: RecordStore> {
    store: Arc<S>,
    spec: Arc<ClaimSpec>,
    /// Armed by the first `changed`. Until then attempts do not stand in line, so a lone try leaves no trace.
    bell: Option<S::Bell>,
    trace: Trace,
}

/// What of this claim may be in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trace {
    None,
    Entry,
    /// The answer to an attempt was lost: the attempt may even arrive after our release.
    Unknown,
}

#[async_trait]
impl<S: RecordStore> Claim for RecordClaim<S> {
    async fn attempt(&mut self) -> Result<Attempt> {
        // Until it is answered nobody can say what of it is in the store.
        let before = std::mem::replace(&mut self.trace, Trace::Unknown);
        let answer = self.store.apply(&self.spec.key, self.trying()).await;
        self.tried(before, answer)
    }

    fn attempt_now(&mut self) -> Option<Result<Attempt>> {
        let answer = self.store.apply_now(&self.spec.key, self.trying()).ok()?;
        Some(self.tried(self.trace, answer))
    }

    async fn changed(&mut self) -> Result<()> {
        let is_armed = self.bell.is_some();
        let bell = self.bell.get_or_insert_with(|| self.store.bell(&self.spec.key, self.spec.id));
        if is_armed || planted(Bug::SubscribeAfterCheck) {
            bell.rung().await;
        }
        Ok(())
    }

    async fn recount(&mut self, holds: Holds) -> Result<Renewal> {
        self.store.apply(&self.spec.key, Step::Recount { id: self.spec.id, holds }).await.and_then(renewal)
    }

    async fn raise(&mut self, fence: u64) -> Result<Renewal> {
        self.store.apply(&self.spec.key, Step::Raise { id: self.spec.id, fence }).await.and_then(renewal)
    }

    async fn release(&mut self) -> Result<Release> {
        let Some(step) = self.leaving() else { return Ok(Release::Released) };
        let answer = self.store.apply(&self.spec.key, step).await;
        self.left(answer)
    }

    fn release_now(&mut self) -> Option<Result<Release>> {
        let Some(step) = self.leaving() else { return Some(Ok(Release::Released)) };
        let answer = self.store.apply_now(&self.spec.key, step).ok()?;
        Some(self.left(answer))
    }
}

impl<S: RecordStore> RecordClaim<S> {
    fn trying(&self) -> Step {
        Step::Attempt { spec: self.spec.clone(), waiting: self.bell.is_some() }
    }

    /// Takes note of what a try left in the store.
    fn tried(&mut self, before: Trace, answer: Result<Answer>) -> Result<Attempt> {
        self.trace = match &answer {
            Err(error) if error.kind() == ErrorKind::Indeterminate => Trace::Unknown,
            _ if before == Trace::Unknown => Trace::Unknown,
            Ok(Answer::Attempt(Attempt::Granted(_))) => Trace::Entry,
            _ if self.bell.is_some() => Trace::Entry,
            _ => before,
        };
        match answer? {
            Answer::Attempt(attempt) => Ok(attempt),
            other => Err(misfit(&other)),
        }
    }

    /// The step of a release; `None` if there can be nothing to release.
    fn leaving(&self) -> Option<Step> {
        let barrier = self.trace == Trace::Unknown;
        let needless = self.trace == Trace::None && self.bell.is_none();
        (!needless).then_some(Step::Release { id: self.spec.id, barrier })
    }

    fn left(&mut self, answer: Result<Answer>) -> Result<Release> {
        let released = answer.and_then(release)?;
        self.trace = Trace::None;
        Ok(released)
    }
}

fn renewal(answer: Answer) -> Result<Renewal> {
    match answer {
        Answer::Renewal(renewal) => Ok(renewal),
        other => Err(misfit(&other)),
    }
}

fn release(answer: Answer) -> Result<Release> {
    match answer {
        Answer::Release(release) => Ok(release),
        other => Err(misfit(&other)),
    }
}

fn misfit(answer: &Answer) -> Error {
    Error::new(
        ErrorKind::Internal,
        Operation::Inspect,
        format!("a record store gave an answer that fits no such step: {answer:?}"),
    )
}
