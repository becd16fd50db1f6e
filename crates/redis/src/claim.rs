//! One contender on Redis: every mode and shape, by one script per step.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use leasehold_core::{
    Error, ErrorKind, Operation, Result,
    backend::{Attempt, Busy, Claim, ClaimSpec, Grant, Holds, Mode, Release, Renewal, Shape},
    planted::{Bug, planted},
};
use redis::{Cmd, Value};
use tokio::time::Instant;

use crate::{
    answer::{self, Tried, millis},
    bell::{Bell, Ring},
    config::Layout,
    connect::Weight,
    crowd,
    error::{Fault, conflict},
    names::{self, Holder},
    people, permit, presence,
    scripts::{self, Script},
    store::Shared,
    wire::chance,
};

/// How long a release after a lost answer keeps a request that is still on its way from doing anything.
const BARRIER: u64 = 120_000;

/// How long the fence of a name is kept after the lease, in milliseconds.
const KEEP: u64 = 24 * 3600 * 1000;

/// One contender.
#[derive(Debug)]
pub(crate) struct RedisClaim {
    store: Arc<Shared>,
    spec: Arc<ClaimSpec>,
    form: Form,
    bell: Option<Bell>,
    /// It has begun to wait: from then on a fair claim stands in line.
    waits: bool,
    trace: Trace,
    /// What was taken back may still be on its way, and would take away whatever it wins from now on.
    is_spent: bool,
    /// The count was written once: what there is may have another shape by now.
    recounted: bool,
    /// How many others were known to wait when it was last told that it has to.
    others: usize,
    /// It was woken along with them, and makes way until then.
    stands_back: Option<Instant>,
}

/// How a claim looks in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Lock,
    Write,
    Fenced,
    Plain,
    Read,
    Permits,
    Counting,
    Open,
}

/// What of this claim may be in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trace {
    None,
    Entry,
    /// The answer to an attempt was lost: the attempt may even arrive after our release.
    Unknown,
}

impl RedisClaim {
    pub(crate) fn new(store: Arc<Shared>, spec: Arc<ClaimSpec>) -> Self {
        let form = Form::of(&spec, store.layout);
        let (waits, is_spent, recounted, others) = Default::default();
        let (bell, trace, stands_back) = (None, Trace::None, None);
        Self { store, spec, form, bell, waits, trace, is_spent, recounted, others, stands_back }
    }

    fn name(&self) -> &str {
        self.spec.key.full()
    }

    /// Not a future of its own: each would keep a copy of all that it is given.
    fn run<'a>(
        &'a self,
        weight: Weight,
        script: &'a Script,
        fill: impl Fn(&mut Cmd) + Send + Sync + 'a,
    ) -> impl Future<Output = Result<Value, Fault>> + Send + 'a {
        let name = self.name();
        self.store.topology.run(name, weight, script, move |command: &mut Cmd| {
            command.arg(1).arg(name);
            fill(command);
        })
    }

    async fn ask(&self) -> Result<Value, Fault> {
        let spec = &self.spec;
        let verb = self.store.topology.verb();
        let lease = spec.ttl.as_millis().max(1) as u64;
        let keep = lease + KEEP;
        let line = match (spec.fair, self.waits) {
            (false, _) => "",
            (true, false) => "try",
            (true, true) => "stand",
        };
        let told = u8::from(self.waits && self.store.presence.is_told(spec.id));
        let label = spec.label.as_deref().unwrap_or("");
        let id = Holder(spec.id);
        let common = move |command: &mut Cmd| {
            command.arg(id).arg(lease).arg(keep).arg(line).arg(told).arg(label).arg(verb);
        };
        match (self.form, spec.mode) {
            (Form::Open, _) => {
                let read = move |command: &mut Cmd| {
                    command.arg("read").arg("").arg(verb);
                };
                self.run(Weight::Plain, &scripts::LATCH, read).await
            }
            (Form::Read, _) => self.run(Weight::Promise, &scripts::SHARE, common).await,
            (Form::Permits, Mode::Permits { take, of }) => {
                let permits = permit::permits(spec.id, take.get());
                self.run(Weight::Promise, &scripts::PERMITS, move |command| {
                    common(command);
                    command.arg(of.get()).arg(&permits);
                })
                .await
            }
            (Form::Counting, Mode::Permits { take, of }) => {
                self.run(Weight::Promise, &scripts::COUNT, move |command| {
                    common(command);
                    command.arg(of.get()).arg(take.get());
                })
                .await
            }
            (form, _) => {
                self.run(Weight::Promise, &scripts::LOCK, move |command| {
                    command.arg(id).arg(lease).arg(keep).arg(form.word()).arg(line).arg(told).arg(label);
                    if spec.fences > 1 {
                        command.arg(spec.fences - 1);
                    }
                })
                .await
            }
        }
    }

    /// Gives back all there is of this claim. Not a future of its own, as [`run`](Self::run).
    fn unlock(&self, barrier: u64) -> impl Future<Output = Result<Value, Fault>> + Send + '_ {
        let told = self.store.presence.is_told(self.spec.id);
        let usual = !told && barrier == 0 && !self.recounted && !self.spec.fair && self.spec.label.is_none();
        let shape = match self.form {
            _ if !usual => "",
            Form::Fenced => Form::Lock.word(),
            form => form.word(),
        };
        let permits = permit::of(self.spec.id, self.spec.mode);
        let verb = self.store.topology.verb();
        let line = if self.spec.fair { "leave" } else { "" };
        self.run(Weight::Plain, &scripts::UNLOCK, move |command| {
            command.arg(Holder(self.spec.id)).arg(verb).arg(shape).arg(&permits);
            command.arg(barrier).arg(line).arg(u8::from(told));
        })
    }

    /// Gives back what too few replicas have, and goes on. No barrier yet, though an earlier answer may be missing: it
    /// would keep this claim from ever winning. Its end sets one, and tries again if this fails.
    async fn take_back(&mut self) {
        match self.unlock(0).await {
            Ok(_) => {
                self.store.presence.forget(self.spec.id);
                if self.trace == Trace::Entry {
                    self.trace = Trace::None;
                }
            }
            Err(Fault::Unknown(_)) => self.is_spent = true,
            Err(_) => {}
        }
    }

    async fn understand(&self, value: Value) -> Result<Attempt> {
        let ttl = self.spec.ttl;
        if self.form == Form::Open {
            return match answer::count(&value)? {
                Ok(0) => Ok(Attempt::Granted(Grant { fence: 0, granted: ttl })),
                Ok(_) => Ok(Attempt::Busy(Busy::default())),
                Err((kind, number)) => Err(self.conflict(&kind, number)),
            };
        }
        match Tried::read(&value)? {
            Tried::Granted { fence } => Ok(Attempt::Granted(Grant { fence, granted: ttl })),
            Tried::Held { fence, left } => Ok(Attempt::Granted(Grant { fence, granted: left.min(ttl) })),
            Tried::Withdrawn => Ok(Attempt::Busy(Busy::default())),
            Tried::Other { kind, number } => Err(self.conflict(&kind, number)),
            Tried::Busy { left, place, waiters, scene } => {
                let mut busy = Busy::default();
                let holders = people::holders(&self.store.presence, &*self.store.topology, &scene);
                busy.holders = Box::pin(holders).await;
                busy.place = Some(place).filter(|place| *place > 0);
                busy.waiters = waiters;
                busy.retry_after = Some(millis(left));
                Ok(Attempt::Busy(busy))
            }
        }
    }

    fn conflict(&self, kind: &str, number: i64) -> Error {
        let wanted = match self.spec.mode {
            Mode::Permits { of, .. } => format!("a semaphore of {of} permits"),
            Mode::Open => "a latch".to_owned(),
            _ if self.form == Form::Plain => "a plain lock".to_owned(),
            _ => "a lock".to_owned(),
        };
        conflict(Operation::Acquire, kind, number, &wanted)
    }

    /// How long it makes way for others after a message that woke them all. Those in a fair line are woken one by one, and
    /// those of a read-write lock do not all stand in each other's way.
    fn makes_way(&self) -> Option<Duration> {
        let is_alone = matches!(self.form, Form::Lock | Form::Fenced | Form::Plain) && !self.spec.fair;
        let pause = if is_alone { crowd::stands_back(self.others, chance) } else { Duration::ZERO };
        (!pause.is_zero()).then_some(pause)
    }

    /// Completes when it has made way. Dropped, it has not: the next one goes on.
    async fn stand_back(&mut self) {
        if let Some(until) = self.stands_back {
            tokio::time::sleep_until(until).await;
            self.stands_back = None;
        }
    }

    /// Where wake-ups for this claim are told: whatever kind of lock frees the name, here or in Java.
    fn channels(&self) -> Vec<String> {
        let name = self.name();
        let mut channels = match self.form {
            Form::Permits | Form::Counting => vec![names::semaphore_channel(name)],
            Form::Open => vec![names::latch_channel(name)],
            Form::Plain => vec![names::lock_channel(name)],
            _ => vec![names::lock_channel(name), names::rwlock_channel(name)],
        };
        if self.spec.fair {
            channels.push(names::head_channel(name, self.spec.id));
        }
        channels
    }
}

#[async_trait]
impl Claim for RedisClaim {
    async fn attempt(&mut self) -> Result<Attempt> {
        if self.is_spent {
            let message =
                "an earlier try was taken back without an answer, so this one cannot win; acquire anew";
            return Err(Error::new(ErrorKind::Unavailable, Operation::Acquire, message));
        }
        self.stands_back = None;
        self.store.presence.introduce(&*self.store.topology, &self.spec);
        let before = std::mem::replace(&mut self.trace, Trace::Unknown);
        let answer = self.ask().await;
        let is_unknown = matches!(answer, Err(Fault::Unknown(_)));
        self.trace = if is_unknown || before == Trace::Unknown { Trace::Unknown } else { before };
        let (answer, unconfirmed) = Fault::split(answer);
        let attempt = self.understand(answer.map_err(|fault| fault.into_error(Operation::Acquire))?).await?;
        if let Attempt::Busy(busy) = &attempt {
            self.others = busy.waiters;
        }
        let leaves_trace = matches!(attempt, Attempt::Granted(_)) || (self.spec.fair && self.waits);
        if leaves_trace && self.trace == Trace::None && self.form != Form::Open {
            self.trace = Trace::Entry;
        }
        match unconfirmed {
            Some(fault) if matches!(attempt, Attempt::Granted(_)) => {
                self.take_back().await;
                Err(fault.into_error(Operation::Acquire))
            }
            _ => Ok(attempt),
        }
    }

    async fn changed(&mut self) -> Result<()> {
        if self.stands_back.is_some() {
            self.stand_back().await;
            return Ok(());
        }
        if !self.waits {
            self.waits = true;
            self.store.presence.stands(&*self.store.topology, self.spec.id);
        }
        if self.bell.is_none() {
            let mut bell = self.store.topology.listen(self.name(), self.channels());
            if planted(Bug::SubscribeAfterCheck) {
                drop(bell.rung().await);
            }
            self.bell = Some(bell);
        }
        let Some(bell) = &mut self.bell else { return Ok(()) };
        match bell.rung().await {
            Ok(Ring::Look) => {
                self.stands_back = self.makes_way().map(|pause| Instant::now() + pause);
                self.stand_back().await;
                Ok(())
            }
            Ok(Ring::Astray) => {
                self.bell = None;
                self.store.topology.look_around().await;
                Ok(())
            }
            Err(fault) => {
                self.bell = None;
                Err(fault.into_error(Operation::Acquire))
            }
        }
    }

    async fn recount(&mut self, holds: Holds) -> Result<Renewal> {
        self.recounted = true;
        let verb = self.store.topology.verb();
        let answer = self
            .run(Weight::Promise, &scripts::RECOUNT, |command| {
                command.arg(Holder(self.spec.id)).arg(verb).arg(holds.exclusive).arg(holds.shared);
            })
            .await;
        answer::renewal(&answer.map_err(|fault| fault.into_error(Operation::Reenter))?)
    }

    async fn raise(&mut self, fence: u64) -> Result<Renewal> {
        let keep = self.spec.ttl.as_millis().max(1) as u64 + KEEP;
        let answer = self
            .run(Weight::Promise, &scripts::RAISE, |command| {
                command.arg(Holder(self.spec.id)).arg(fence).arg(keep);
            })
            .await;
        answer::renewal(&answer.map_err(|fault| fault.into_error(Operation::Acquire))?)
    }

    async fn release(&mut self) -> Result<Release> {
        self.bell = None;
        let told = self.store.presence.is_told(self.spec.id);
        if self.trace == Trace::None {
            if told {
                let removal = presence::removal(self.name(), self.spec.id);
                let removed = self.store.topology.call(self.name(), removal).await;
                removed.map_err(|fault| fault.into_error(Operation::Release))?;
                self.store.presence.forget(self.spec.id);
            }
            return Ok(Release::Released);
        }
        let barrier = if self.trace == Trace::Unknown { BARRIER } else { 0 };
        let answer = self.unlock(barrier).await.map_err(|fault| fault.into_error(Operation::Release))?;
        let released = answer::release(&answer)?;
        self.store.presence.forget(self.spec.id);
        self.trace = Trace::None;
        Ok(released)
    }
}

impl Drop for RedisClaim {
    fn drop(&mut self) {
        if self.waits {
            self.store.presence.stands_no_more(self.spec.id);
        }
    }
}

impl Form {
    fn of(spec: &ClaimSpec, layout: Layout) -> Self {
        match (spec.mode, spec.shape) {
            (Mode::Shared, _) => Self::Read,
            (Mode::Permits { .. }, Shape::Counting) => Self::Counting,
            (Mode::Permits { .. }, _) => Self::Permits,
            (Mode::Open, _) => Self::Open,
            (_, Shape::ReadWrite) => Self::Write,
            (_, Shape::Fenced) => Self::Fenced,
            (_, Shape::Plain) => Self::Plain,
            _ if layout == Layout::Plain => Self::Plain,
            _ => Self::Lock,
        }
    }

    /// As scripts call it.
    fn word(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Write => "write",
            Self::Fenced => "fenced",
            Self::Plain => "plain",
            Self::Read | Self::Permits | Self::Counting | Self::Open => "",
        }
    }
}
