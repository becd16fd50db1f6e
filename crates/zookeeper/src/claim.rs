//! One contender: an ephemeral sequential node, from its creation to its removal.
//!
//! The first try sends two requests at once, the creation and a look at the line, and needs one round trip. Whoever has
//! to wait watches one other node and proves its session with every further look, so a grant is never believed on the
//! word of a server that has lost its leader.
//!
//! A creation whose answer was lost is found again by the id in its name, and taken over only if it belongs to the
//! session we have: a dying session's node would take the lock with it.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::join;
use leasehold_core::{
    Error, Operation, Result,
    backend::{Attempt, Busy, Claim, ClaimSpec, Grant, Holds, Mode, Release, Renewal},
    planted::{Bug, planted},
    time::{Clock, Instant},
};
use zookeeper_client::CreateMode;

use crate::{
    admin,
    bell::Bell,
    book::Own,
    error::Fault,
    latch,
    line::{Blocker, Downgraded, Line, Turn},
    names::{self, Contender, Stand},
    session::Session,
    store::{POLL, Shared},
    tag::Tag,
};

/// How often to look again at once when the line moved between two looks.
const ROUNDS: usize = 8;

/// One contender.
#[derive(Debug)]
pub(crate) struct ZooKeeperClaim {
    shared: Arc<Shared>,
    spec: Arc<ClaimSpec>,
    parent: String,
    /// Lives as long as the claim: a waiting node without it is nobody's.
    token: Arc<()>,
    /// Set by the first `changed`: from then on a busy answer comes with a watch.
    armed: bool,
    bell: Option<Bell>,
    trace: Trace,
}

/// What of this claim may be in the store, beside what the book knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trace {
    None,
    /// A node that was answered for.
    Node,
    /// The answer to a creation was lost.
    Unknown,
    /// The answer to a removal was lost.
    Leaving,
}

#[async_trait]
impl Claim for ZooKeeperClaim {
    async fn attempt(&mut self) -> Result<Attempt> {
        self.bell = None;
        if self.trace != Trace::None {
            self.shared.book.spare(self.spec.id).await;
        }
        let attempt = match self.spec.mode {
            Mode::Open => self.await_latch().await,
            _ => self.contend().await,
        };
        if attempt.is_err() && self.trace != Trace::None && self.stand() == Stand::Try {
            self.trace = Trace::Unknown;
            self.shared.book.sweep(self.spec.id, &self.parent).await;
        }
        attempt.map_err(|fault| fault.into_error(Operation::Acquire))
    }

    async fn changed(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.armed, true) {
            return Ok(());
        }
        if let Some(bell) = &mut self.bell {
            bell.rung().await;
            self.bell = None;
        }
        Ok(())
    }

    async fn recount(&mut self, holds: Holds) -> Result<Renewal> {
        self.write_count(holds).await.map_err(|fault| fault.into_error(Operation::Reenter))
    }

    async fn release(&mut self) -> Result<Release> {
        self.bell = None;
        if self.trace == Trace::None {
            return Ok(Release::Released);
        }
        self.leave().await.map_err(|fault| fault.into_error(Operation::Release))
    }
}

impl ZooKeeperClaim {
    pub(crate) fn new(shared: Arc<Shared>, spec: Arc<ClaimSpec>) -> Self {
        let parent = shared.path(spec.key.full());
        let token = Arc::new(());
        Self { shared, spec, parent, token, armed: false, bell: None, trace: Trace::None }
    }

    async fn contend(&mut self) -> Result<Attempt, Fault> {
        let session = self.shared.link.session().await?;
        for _ in 0..ROUNDS {
            let sent = Clock::boot().now();
            let (own, line, is_new) = self.look(&session).await?;
            if let Some(until) = own.until {
                return Ok(granted(own.fence, sent.until(until)));
            }
            self.refuse_other_use(&session, &own, &line).await?;
            let mut downgraded = Downgraded::new();
            match self.turn(&session, &own, &line, &mut downgraded).await? {
                Turn::Holds if !is_new && !self.spec.fair && line.fair_behind(&own.node) => {
                    // Those who stand in the fair line go first: we go to its end.
                    self.remove(&session, &own).await?;
                }
                Turn::Holds => {
                    if let Some(attempt) = self.take(&session, &own, sent) {
                        return Ok(attempt);
                    }
                }
                Turn::Waits(blocker) => {
                    if !self.armed || self.watch(&session, &line, &blocker).await? {
                        let (us, them) = ((&*self.parent, &*own.node), (&line, &downgraded));
                        let mut busy = admin::busy(&session, &self.shared.book, us, them).await?;
                        busy.place = busy.place.filter(|_| self.spec.fair && self.armed);
                        if self.stand() == Stand::Try {
                            self.remove(&session, &own).await?;
                        }
                        return Ok(Attempt::Busy(busy));
                    }
                }
                Turn::Absent => self.shared.book.remove(self.spec.id),
            }
        }
        let mut busy = Busy::default();
        busy.retry_after = Some(POLL);
        Ok(Attempt::Busy(busy))
    }

    /// How we stand in line. A claim that is neither fair nor shared may wait behind others of its process without
    /// another try: a node of it would stand in everybody's way, and nobody would see when its turn comes.
    fn stand(&self) -> Stand {
        match self.spec.mode {
            _ if self.spec.fair => Stand::Fair,
            Mode::Exclusive if !self.armed => Stand::Try,
            _ => Stand::Plain,
        }
    }

    /// Our node and the line it stands in; whether the node is new.
    async fn look(&mut self, session: &Session) -> Result<(Own, Line, bool), Fault> {
        if let Some(own) = self.shared.book.ending(self.spec.id) {
            session.delete(&own.path()).await?;
            self.shared.book.forget(self.spec.id, &own.node);
        }
        let known = self.shared.book.adopt(self.spec.id, session.id(), &self.token);
        let found = match known {
            Some(own) => Some(own),
            None if self.trace == Trace::None => None,
            None => self.find(session).await?,
        };
        if let Some(own) = found {
            self.trace = Trace::Node;
            let (proof, children) = join(session.prove(), session.children(&self.parent)).await;
            proof?;
            let line = Line::of(children?);
            if line.position(&own.node).is_some() {
                return Ok((own, line, false));
            }
            self.shared.book.remove(self.spec.id);
        }
        let (own, line) = self.join(session).await?;
        Ok((own, line, true))
    }

    /// Joins the line. Creation and look go together: the server answers them in this order.
    async fn join(&mut self, session: &Session) -> Result<(Own, Line), Fault> {
        let spec = &self.spec;
        let prefix = names::prefix(spec.id, spec.mode, self.stand());
        let path = format!("{}/{prefix}", self.parent);
        let data = Tag::of(spec, Holds::first(spec.mode)).encode();
        let options = session.options(CreateMode::EphemeralSequential);
        for _ in 0..ROUNDS {
            self.trace = Trace::Unknown;
            let created = session.answered(session.client.create(&path, &data, &options));
            let (created, children) = join(created, session.children(&self.parent)).await;
            match created {
                Ok((stat, sequence)) => {
                    self.trace = Trace::Node;
                    let node = format!("{prefix}{sequence}");
                    let fence = stat.czxid.cast_unsigned();
                    let own = Own::new(&self.parent, node, session.id(), fence, &self.token);
                    self.shared.book.insert(spec.id, own.clone());
                    return Ok((own, Line::of(children?)));
                }
                // The container was never there, or the server has just removed it.
                Err(fault) if fault.is_no_node() => {
                    self.trace = Trace::None;
                    session.make_parent(&path).await?;
                }
                Err(fault) => {
                    self.trace = if fault.is_unknown() { Trace::Unknown } else { Trace::None };
                    return Err(fault);
                }
            }
        }
        Err(Fault::NotSent(vanishing()))
    }

    /// Finds what a creation left whose answer was lost. What a session left that is over is removed.
    async fn find(&mut self, session: &Session) -> Result<Option<Own>, Fault> {
        let (mut found, stand) = (None, self.stand());
        for (contender, stat) in admin::traces(session, &self.parent, self.spec.id).await? {
            let of_session = stat.ephemeral_owner == session.id() || planted(Bug::AdoptsForeign);
            let is_ours = contender.stand == stand && of_session;
            let own =
                Own::new(&self.parent, contender.node, session.id(), stat.czxid.cast_unsigned(), &self.token);
            if found.is_none() && is_ours {
                self.shared.book.insert(self.spec.id, own.clone());
                found = Some(own);
            } else {
                session.delete(&own.path()).await?;
            }
        }
        Ok(found)
    }

    /// Refuses a name that others before us use as something else, and leaves nothing there.
    async fn refuse_other_use(&mut self, session: &Session, own: &Own, line: &Line) -> Result<(), Fault> {
        let refusal = match line.conflict(Some(&own.node), self.spec.mode) {
            _ if line.foreign.is_some() => admin::foreign(line),
            None => return Ok(()),
            Some(found) => {
                let found = latch::counted(session, &self.parent, found).await?;
                Error::conflict(Operation::Acquire, found, &admin::noun(self.spec.mode))
            }
        };
        self.remove(session, own).await?;
        Err(Fault::NotSent(refusal))
    }

    /// Where we stand. A writer's name cannot tell that it has become a reader; its text does.
    async fn turn(
        &mut self,
        session: &Session,
        own: &Own,
        line: &Line,
        downgraded: &mut Downgraded,
    ) -> Result<Turn, Fault> {
        loop {
            match line.turn(&own.node, downgraded) {
                Turn::Waits(Blocker::Changed(node)) if self.spec.mode == Mode::Shared => {
                    if !self.reads(session, &node).await? {
                        return Ok(Turn::Waits(Blocker::Changed(node)));
                    }
                    downgraded.insert(node);
                }
                turn => return Ok(turn),
            }
        }
    }

    /// Whether a writer has become a reader, or is gone.
    async fn reads(&mut self, session: &Session, node: &str) -> Result<bool, Fault> {
        let path = format!("{}/{node}", self.parent);
        match session.answered(session.client.get_data(&path)).await {
            Ok((data, _)) => {
                Ok(Contender::parse(node).is_some_and(|writer| Tag::decode(&writer, &data).shared))
            }
            Err(fault) if fault.is_no_node() => Ok(true),
            Err(fault) => Err(fault),
        }
    }

    /// Takes what is ours; `None` if it was taken from us meanwhile.
    fn take(&self, session: &Session, own: &Own, sent: Instant) -> Option<Attempt> {
        let lease = self.spec.ttl.min(session.lease());
        if !self.shared.book.hold(self.spec.id, sent.after(lease)) {
            return None;
        }
        if self.armed && matches!(self.spec.mode, Mode::Permits { .. }) {
            // News for the one behind us, who has to look for permits itself from now on. It is on its way with this
            // call; if it is lost, that one looks again at its polling pause.
            let tag = Tag::of(&self.spec, Holds::first(self.spec.mode)).after_waiting();
            drop(session.client.set_data(&own.path(), &tag.encode(), None));
        }
        Some(granted(own.fence, lease))
    }

    /// Sets the watch; `false` if the line has moved meanwhile.
    async fn watch(&mut self, session: &Session, line: &Line, blocker: &Blocker) -> Result<bool, Fault> {
        self.bell = Bell::set(session, &self.parent, line, blocker).await?;
        Ok(self.bell.is_some())
    }

    /// Waits for a latch: nothing is held, so a node is made only to be seen.
    async fn await_latch(&mut self) -> Result<Attempt, Fault> {
        let session = self.shared.link.session().await?;
        let latch = Blocker::Gone(names::LATCH.to_owned());
        for _ in 0..ROUNDS {
            let line = if self.armed {
                self.look(&session).await?.1
            } else {
                Line::of(session.children(&self.parent).await?)
            };
            if let Some(found) = line.conflict(None, Mode::Open) {
                drop(self.leave().await?);
                return Err(Fault::NotSent(Error::conflict(Operation::Acquire, found, "a latch")));
            }
            if !line.latch {
                drop(self.leave().await?);
                return Ok(granted(0, self.spec.ttl));
            }
            if !self.armed || self.watch(&session, &line, &latch).await? {
                break;
            }
        }
        let mut busy = Busy::default();
        busy.retry_after = Some(POLL);
        Ok(Attempt::Busy(busy))
    }

    async fn write_count(&mut self, holds: Holds) -> Result<Renewal, Fault> {
        let session = self.shared.link.session().await?;
        let own = self.shared.book.get(self.spec.id, session.id());
        let Some((own, until)) = own.and_then(|own| own.until.map(|until| (own, until))) else {
            return Ok(Renewal::Lost(None));
        };
        let data = Tag::of(&self.spec, holds).encode();
        let sent = Clock::boot().now();
        match session.answered(session.client.set_data(&own.path(), &data, None)).await {
            Ok(_) => Ok(Renewal::Renewed { granted: sent.until(until) }),
            Err(fault) if fault.is_no_node() => {
                Ok(Renewal::Lost(admin::mark(&session, &self.parent, self.spec.id).await?))
            }
            Err(fault) => Err(fault),
        }
    }

    /// Removes everything of ours, whatever is known of it.
    async fn leave(&mut self) -> Result<Release, Fault> {
        if self.trace == Trace::None {
            return Ok(Release::Released);
        }
        self.shared.book.spare(self.spec.id).await;
        let session = self.shared.link.session().await?;
        let own = self.shared.book.get(self.spec.id, session.id());
        let mut removed = self.trace == Trace::Leaving;
        match own {
            Some(own) => removed |= self.remove(&session, &own).await?,
            None => removed |= admin::remove_traces(&session, &self.parent, self.spec.id).await?,
        }
        self.shared.book.remove(self.spec.id);
        self.trace = Trace::None;
        let broken =
            if removed { None } else { admin::take_mark(&session, &self.parent, self.spec.id).await? };
        Ok(if removed { Release::Released } else { Release::Gone(broken) })
    }

    /// Removes our node; says whether it was there.
    async fn remove(&mut self, session: &Session, own: &Own) -> Result<bool, Fault> {
        match session.delete(&own.path()).await {
            Ok(removed) => {
                self.shared.book.remove(self.spec.id);
                self.trace = Trace::None;
                Ok(removed)
            }
            Err(fault) => {
                self.trace = if fault.is_unknown() { Trace::Leaving } else { self.trace };
                Err(fault)
            }
        }
    }
}

fn granted(fence: u64, granted: std::time::Duration) -> Attempt {
    Attempt::Granted(Grant { fence, granted })
}

fn vanishing() -> Error {
    let message = "the container of this name vanishes again and again; does something delete it?";
    Error::new(leasehold_core::ErrorKind::Unavailable, Operation::Acquire, message)
}
