//! One contender on all members.
//!
//! An attempt is a vote in two rounds. The first asks every member for the lock; the second raises the counters of those
//! that granted it, where they are behind, to the greatest fence given, so that a majority counts on from it. What is
//! won late, by a member that answered after the vote was won, belongs to the hold and goes with it; after a vote that
//! was lost it is given back as it comes.
//!
//! When nobody gets a majority because several contend at once, each gives back what it got and rests for a time of its
//! own, longer each time, whatever bells ring meanwhile: otherwise they would wake each other to meet again for ever.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use tokio::runtime::Handle;

use super::{
    Shared,
    refusals::{too_few, unsupported},
    seat::{GivenUp, Left, Seat},
    slots::{Hold, Slot, Slots},
    vote::{Renewals, Votes},
};
use crate::{
    backend::{Attempt, Claim, ClaimSpec, Grant, Holds, Mode, Release, Renewal},
    error::{Error, ErrorKind, Operation, Result},
    time::Instant,
};

/// The first rest after a split vote is up to this, or twice as long as the vote took.
const REST: Duration = Duration::from_millis(2);

/// No rest is longer.
const LONGEST_REST: Duration = Duration::from_millis(500);

/// After a won vote, those who have not answered are given this part of the usual time; whoever needs longer is not
/// waited for again until it has answered.
const GRACE: u32 = 4;

/// One contender.
#[derive(Debug)]
pub(super) struct QuorumClaim {
    shared: Arc<Shared>,
    slots: Arc<Slots>,
    /// It has asked somebody.
    asked: bool,
    /// Split votes in a row.
    splits: u32,
    /// It is not to contend before this.
    rests: Option<Instant>,
}

impl QuorumClaim {
    pub(super) fn new(shared: Arc<Shared>, spec: Arc<ClaimSpec>) -> Self {
        let slots = Slots::new(shared.members.clone(), spec, &shared.clock);
        Self { shared, slots, asked: false, splits: 0, rests: None }
    }

    fn spec(&self) -> &ClaimSpec {
        &self.slots.spec
    }

    fn patience(&self) -> Duration {
        self.shared.patience(self.spec().ttl)
    }

    /// The first round. Whoever was not heard in time is asked no more until its answer came; a request that is still
    /// under way at one that is well goes first.
    async fn vote(&self, start: Instant) -> (Votes, Result<Option<Grant>>) {
        let (mut round, given_up) = (self.shared.round(self.patience()), GivenUp::default());
        let members = &self.shared.members;
        for at in (0..members.len()).filter(|at| !members[*at].is_mute() || self.slots.is_here(*at)) {
            let given_up = given_up.clone();
            round.add(at, self.slots.ask(at, move |seat| seat.attempt(given_up)));
        }
        let mut votes = Votes::new(&self.shared);
        while !votes.is_certain(round.pending())
            && let Some((at, answer)) = round.next().await
        {
            votes.add(at, answer);
        }
        // Whoever is well answers too, in a moment: with all of them there is one fence, and nobody comes late.
        round.hurry(self.patience() / GRACE);
        while votes.is_won()
            && !round.waits_for_mute_ones_only()
            && let Some((at, answer)) = round.next().await
        {
            votes.add(at, answer);
        }
        while let Some((at, answer)) = round.ready() {
            votes.add(at, answer);
        }
        let grant = if votes.is_won() { self.settle(start, &votes).await.map(Some) } else { Ok(None) };
        if !matches!(grant, Ok(Some(_))) {
            given_up.give_up();
        }
        round.go_on();
        (votes, grant)
    }

    /// The second round: one fence of many, on a majority, while the lease still runs.
    async fn settle(&self, start: Instant, votes: &Votes) -> Result<Grant> {
        let fence = match self.slots.hold() {
            // A repeated attempt finds the earlier result, even if a member that came late counts ahead.
            Some(hold) if self.has_majority_up_to(hold.fence, votes) => hold.fence,
            _ => votes.fence(),
        };
        self.raise(fence, votes).await?;
        let grant = Grant { fence, granted: votes.lease() };
        // Belief counts from before the first request, so what the votes took is not subtracted here; but nothing
        // that is over by now is handed out.
        if start.believing(grant.granted) <= self.shared.clock.now() {
            let message = "the members took longer to answer than the lease lasts; use a longer ttl";
            return Err(Error::new(ErrorKind::Unavailable, Operation::Acquire, message));
        }
        Ok(grant)
    }

    fn has_majority_up_to(&self, fence: u64, votes: &Votes) -> bool {
        votes.granted.iter().filter(|(_, grant)| grant.fence <= fence).count() >= self.shared.quorum
    }

    async fn raise(&self, fence: u64, votes: &Votes) -> Result<()> {
        // Those whose counter is there need not be asked; if they are a majority nobody need be.
        let mut raised = votes.granted.iter().filter(|(_, grant)| grant.fence >= fence).count();
        let mut round = self.shared.round(self.patience());
        let (mut errors, quorum) = (Vec::new(), self.shared.quorum);
        if raised < quorum {
            for (at, _) in votes.granted.iter().filter(|(_, grant)| grant.fence < fence) {
                round.add(*at, self.slots.ask(*at, move |seat| seat.raise(fence)));
            }
        }
        while raised < quorum
            && raised + round.pending() >= quorum
            && let Some((_, answer)) = round.next().await
        {
            match answer {
                Ok(Renewal::Renewed { .. }) => raised += 1,
                Ok(Renewal::Lost(_)) => {}
                Err(error) => errors.push(error),
            }
        }
        while let Some((_, answer)) = round.ready() {
            raised += usize::from(matches!(answer, Ok(Renewal::Renewed { .. })));
        }
        round.go_on();
        if raised >= quorum {
            return Ok(());
        }
        match errors.iter().position(|error| error.kind() == ErrorKind::Unsupported) {
            Some(at) => Err(errors.swap_remove(at)),
            None => Err(too_few(Operation::Acquire, (raised, quorum, self.shared.len()), errors)),
        }
    }

    /// Gives back what a lost vote left, wherever it may have left something.
    async fn step_back(&self, votes: &Votes) {
        let granted = votes.granted.iter().map(|(at, _)| *at);
        let mut round = self.shared.round(self.patience());
        for at in granted.chain(votes.unsure.iter().copied()) {
            round.add(at, self.slots.ask(at, Seat::stepped_back));
        }
        while !round.waits_for_mute_ones_only() && round.next().await.is_some() {}
        round.go_on();
    }

    fn won(&mut self, grant: Grant) {
        self.splits = 0;
        self.slots.set_hold(Some(Hold { fence: grant.fence, holds: None }));
        self.shared.keeps(&self.slots);
    }

    /// A time to rest that is another for each contender and each try.
    fn rest_after(&mut self, start: Instant) -> Duration {
        let now = self.shared.clock.now();
        self.splits += 1;
        let first = REST.max(start.until(now) * 2);
        let most = (first * 2_u32.pow(self.splits.min(8))).min(LONGEST_REST);
        let mut hasher = DefaultHasher::new();
        (self.spec().id, self.splits, now.as_nanos()).hash(&mut hasher);
        let rest = most.mul_f64(f64::from(hasher.finish() as u32) / f64::from(u32::MAX));
        self.rests = Some(now.after(rest));
        rest
    }

    /// Goes on with members that have not let go, without anybody waiting for it.
    fn leave_behind(&self, unconfirmed: impl Iterator<Item = usize>) {
        let until = self.shared.clock.now().after(self.spec().ttl);
        for at in unconfirmed {
            let clock = self.shared.clock.clone();
            Handle::current().spawn(self.slots.ask(at, move |seat| seat.leave_until(clock, until)));
        }
    }
}

#[async_trait]
impl Claim for QuorumClaim {
    async fn attempt(&mut self) -> Result<Attempt> {
        refuse(self.spec())?;
        (self.asked, self.rests) = (true, None);
        let start = self.shared.clock.now();
        let (votes, grant) = self.vote(start).await;
        if let Ok(Some(grant)) = grant {
            self.won(grant);
            return Ok(Attempt::Granted(grant));
        }
        self.step_back(&votes).await;
        grant?;
        let defeat = votes.lost()?;
        let mut busy = defeat.busy;
        if defeat.split {
            busy.retry_after = Some(self.rest_after(start));
        } else {
            self.splits = 0;
        }
        Ok(Attempt::Busy(busy))
    }

    async fn changed(&mut self) -> Result<()> {
        if let Some(rests) = self.rests {
            self.shared.clock.pause(self.shared.clock.now().until(rests)).await;
            self.rests = None;
            return Ok(());
        }
        listen(&self.slots, self.patience()).await
    }

    async fn recount(&mut self, holds: Holds) -> Result<Renewal> {
        let (mut round, mut renewals) = (self.shared.round(self.patience()), Renewals::default());
        for at in 0..self.shared.len() {
            round.add(at, self.slots.ask(at, move |seat| seat.recount(holds)));
        }
        while !(renewals.is_certain(&self.shared) && round.waits_for_mute_ones_only())
            && let Some((at, answer)) = round.next().await
        {
            renewals.add(at, answer);
        }
        round.go_on();
        let renewal = renewals.decide(&self.shared, Operation::Reenter)?;
        if let Renewal::Renewed { .. } = renewal {
            self.slots.counted(holds);
        }
        Ok(renewal)
    }

    async fn release(&mut self) -> Result<Release> {
        let was_held = self.slots.hold().is_some();
        self.shared.keeps_no_more(&self.slots);
        if !self.asked {
            return Ok(Release::Released);
        }
        let quorum = self.shared.quorum;
        let (mut round, mut left, mut errors) = (self.shared.round(self.patience()), Vec::new(), Vec::new());
        for at in 0..self.shared.len() {
            round.add(at, self.slots.ask(at, Seat::leave));
        }
        while !(left.len() >= quorum && round.waits_for_mute_ones_only())
            && let Some((at, answer)) = round.next().await
        {
            match answer {
                Ok(answer) => left.push((at, answer)),
                Err(error) => errors.push(error),
            }
        }
        round.go_on();
        if left.len() < quorum {
            return Err(too_few(Operation::Release, (left.len(), quorum, self.shared.len()), errors));
        }
        self.slots.set_hold(None);
        self.leave_behind((0..self.shared.len()).filter(|at| left.iter().all(|(found, _)| found != at)));
        Ok(if was_held { self.found_held(&left) } else { Release::Released })
    }
}

impl QuorumClaim {
    /// Whether what was released was still held: a majority had it, as far as can be told.
    fn found_held(&self, left: &[(usize, Left)]) -> Release {
        let silent = self.shared.len() - left.len();
        let had =
            left.iter().filter(|(_, left)| left.was_granted && left.release == Release::Released).count();
        if had + silent >= self.shared.quorum {
            return Release::Released;
        }
        let broken = left.iter().find_map(|(_, left)| match &left.release {
            Release::Gone(broken) => broken.clone(),
            Release::Released => None,
        });
        Release::Gone(broken)
    }
}

/// Nothing of a claim that is gone is asked for again.
impl Drop for QuorumClaim {
    fn drop(&mut self) {
        self.shared.keeps_no_more(&self.slots);
    }
}

/// What listening at one seat came to.
enum Heard {
    /// Its bell is set up: from now on it can ring.
    Armed,
    Rung,
    Failed(Error),
    Lost,
}

/// Completes when any member's bell rings. Bells not set up yet are set up first, all of them, so that one more try
/// finds them all listening; one that takes too long is not waited for again.
async fn listen(slots: &Slots, patience: Duration) -> Result<()> {
    let mut listening = slots.listen();
    let is_armed = |slot: &Slot| !matches!(slot, Slot::Here(seat) if !seat.armed);
    let mut unarmed = listening.seats.iter().filter(|slot| !is_armed(slot)).count();
    let arms = unarmed > 0;
    let mut failure = None;
    let rung = {
        let mut bells: FuturesUnordered<_> = listening.seats.iter_mut().map(hear).collect();
        let mut patience = std::pin::pin!(tokio::time::sleep(patience));
        loop {
            let heard = tokio::select! {
                biased;
                heard = bells.next() => heard,
                () = &mut patience, if arms => break true,
            };
            match heard {
                Some(Heard::Armed) if unarmed > 1 => unarmed -= 1,
                Some(Heard::Armed) => break true,
                Some(Heard::Rung) => {
                    // The others were told the same: one ring for all of them.
                    while let Some(Some(_)) = bells.next().now_or_never() {}
                    break true;
                }
                Some(Heard::Failed(error)) => {
                    unarmed = unarmed.saturating_sub(1);
                    failure = Some(error);
                    if arms && unarmed == 0 && !bells.is_empty() {
                        break true;
                    }
                }
                Some(Heard::Lost) => {}
                None => break false,
            }
        }
    };
    for slot in &mut listening.seats {
        if let Slot::Here(seat) = slot {
            seat.armed = true;
        }
    }
    match failure {
        Some(error) if !rung => Err(error),
        _ => Ok(()),
    }
}

async fn hear(slot: &mut Slot) -> Heard {
    let Some(seat) = slot.come_back().await else { return Heard::Lost };
    let was_armed = seat.armed;
    match seat.changed().await {
        Ok(()) if was_armed => Heard::Rung,
        Ok(()) => Heard::Armed,
        Err(error) => Heard::Failed(error),
    }
}

/// Refuses what a majority cannot decide; see the [module](super).
fn refuse(spec: &ClaimSpec) -> Result<()> {
    match spec.mode {
        Mode::Permits { .. } => Err(unsupported(Operation::Acquire, "semaphores")),
        Mode::Open => Err(unsupported(Operation::Acquire, "latches")),
        _ if spec.fair => Err(unsupported(Operation::Acquire, "fair line")),
        Mode::Exclusive | Mode::Shared => Ok(()),
    }
}
