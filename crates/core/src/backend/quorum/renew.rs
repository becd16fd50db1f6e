//! Renewing leases on a majority, and mending what a member lacks.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use super::{Shared, slots::Slots, vote::Renewals};
use crate::{
    backend::{Renew, Renewal},
    error::{Error, ErrorKind, Operation, Result},
};

/// Renews on all members at once, and waits until a majority has spoken about each lease.
pub(super) async fn renew(shared: &Shared, batch: &[Renew]) -> Vec<Result<Renewal>> {
    let Some(longest) = batch.iter().map(|renew| renew.ttl).max() else { return Vec::new() };
    let start = shared.clock.now();
    let holds: Vec<Option<Arc<Slots>>> = batch.iter().map(|renew| held(shared, renew)).collect();
    let turns: Vec<_> = holds.iter().map(|slots| slots.as_ref().map(|slots| slots.turns())).collect();
    let mut renewals: Vec<Renewals> = batch.iter().map(|_| Renewals::default()).collect();
    let mut round = shared.round(shared.patience(longest));
    for (at, member) in shared.members.iter().enumerate() {
        let (backend, batch) = (member.backend(), batch.to_vec());
        round.add(at, async move { backend.renew(&batch).await });
    }
    let is_certain = |renewals: &[Renewals]| renewals.iter().all(|renewal| renewal.is_certain(shared));
    // Those who answer are heard, so that it shows who lacks the lock.
    while !(is_certain(&renewals) && round.waits_for_mute_ones_only())
        && let Some((at, answers)) = round.next().await
    {
        let mut answers = answers.into_iter();
        for (at_lock, renewal) in renewals.iter_mut().enumerate() {
            let answer = answers.next().unwrap_or_else(|| Err(unanswered()));
            let now = holds[at_lock].as_ref().map(|slots| slots.turns()[at]);
            let then = turns[at_lock].as_ref().map(|turns| turns[at]);
            let counts = now == then && now != Some(None);
            renewal.add(at, if counts { answer } else { Err(unanswered()) });
        }
    }
    round.go_on();
    mend(shared, longest, &holds, &renewals).await;
    let decided = renewals.into_iter().map(|renewal| renewal.decide(shared, Operation::Renew));
    decided.map(|decided| decided.and_then(|renewal| in_time(shared, start, renewal))).collect()
}

/// The seats of a lock that this process holds.
fn held(shared: &Shared, renew: &Renew) -> Option<Arc<Slots>> {
    shared.held().get(&renew.id).and_then(Weak::upgrade)
}

/// Asks those members again that lack a lock which a majority has.
async fn mend(shared: &Shared, longest: Duration, holds: &[Option<Arc<Slots>>], renewals: &[Renewals]) {
    let mut round = shared.round(shared.patience(longest));
    for (slots, renewal) in holds.iter().zip(renewals) {
        // Where somebody broke it, it is over, though not all members have heard of that yet.
        if renewal.lost.is_empty() || renewal.broken.is_some() || !renewal.is_renewed(shared) {
            continue;
        }
        let Some((slots, hold)) = slots.as_ref().and_then(|slots| Some((slots, slots.hold()?))) else {
            continue;
        };
        for at in renewal.lost.iter().copied().filter(|at| slots.is_here(*at)) {
            round.add(at, slots.ask(at, move |seat| seat.mend(hold.fence, hold.holds)));
        }
    }
    while !round.waits_for_mute_ones_only() && round.next().await.is_some() {}
    round.go_on();
}

/// A renewal that came too late to be believed renewed nothing.
fn in_time(shared: &Shared, start: crate::time::Instant, renewal: Renewal) -> Result<Renewal> {
    match renewal {
        Renewal::Renewed { granted } if start.believing(granted) <= shared.clock.now() => {
            let message = "the members took longer to answer than the lease lasts; use a longer ttl";
            Err(Error::new(ErrorKind::Unavailable, Operation::Renew, message))
        }
        renewal => Ok(renewal),
    }
}

fn unanswered() -> Error {
    Error::new(ErrorKind::Internal, Operation::Renew, "a member gave no answer about this lock")
}
