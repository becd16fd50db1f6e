//! How an acquisition begins: with what can be done on the spot.
//!
//! A store within this process answers without a future, and most locks on it come and go without anybody waiting. Any other
//! store is not asked here. What is not won here goes on in `acquire.rs`.

use std::{sync::Arc, time::Duration};

use super::{
    Engine,
    acquire::{Contender, First, Order, fits, is_gated, kept},
    hold::Hold,
    measure::Series,
    observe,
    won::Won,
};
use crate::{
    backend::{Attempt, Busy, ClaimSpec},
    error::{Error, Operation, Result},
};

/// Acquires on the spot, from a store within this process, if the lock is to be had at once. `None` leaves no trace and says
/// nothing of the lock, nor of what is wrong with the order: [`acquire`] does.
pub(crate) fn acquire_now(engine: &Arc<Engine>, order: Order) -> Option<Won> {
    match begin(engine, order) {
        Begun::Won(won) => Some(won),
        Begun::Untried(mut contender) => {
            // Nothing was sent.
            contender.claim = None;
            None
        }
        Begun::Busy(mut contender, _) => {
            if let Some(Ok(_)) = contender.claim().release_now() {
                contender.claim = None;
            }
            None
        }
        Begun::Failed(..) => None,
    }
}

/// What came of what can be done on the spot.
pub(super) enum Begun {
    Won(Won),
    /// By a store that needs a future for it.
    Untried(Contender),
    Busy(Box<Contender>, Option<Busy>),
    Failed(Arc<ClaimSpec>, Series, Error),
}

/// One try, not waiting, by a store that needs no future for it. Most locks come and go this way: what a hold needs is
/// moved into it.
pub(super) fn begin(engine: &Arc<Engine>, order: Order) -> Begun {
    match line(engine, &order.spec) {
        Ok(None) => {}
        Ok(busy) => return Begun::Busy(Box::new(Contender::new(engine, order)), busy),
        Err(error) => return Begun::Failed(order.spec, order.keeping.series, error),
    }
    let sent = engine.clock.now();
    let mut claim = engine.backend.claim(order.spec.clone());
    match claim.attempt_now() {
        Some(Ok(Attempt::Granted(grant))) => {
            let Order { spec, keeping, .. } = order;
            let hold = Hold::new(engine.clone(), spec, &keeping, claim, grant, sent, Duration::ZERO);
            match kept(hold, sent) {
                Ok(won) => {
                    observe::acquired_now(&won);
                    Begun::Won(won)
                }
                Err((spec, error)) => Begun::Failed(spec, keeping.series, error),
            }
        }
        Some(answer) => {
            let (spec, series) = (order.spec.clone(), order.keeping.series.clone());
            match Contender::with(engine, order, claim).tried(sent, answer) {
                Ok(First::Held(won)) => Begun::Won(won),
                Ok(First::Busy(contender, busy)) => Begun::Busy(contender, busy),
                Err(error) => Begun::Failed(spec, series, error),
            }
        }
        None => Begun::Untried(Contender::with(engine, order, claim)),
    }
}

/// Refuses what cannot be. Says who is before us within this process, if there is anybody.
fn line(engine: &Engine, spec: &ClaimSpec) -> Result<Option<Busy>> {
    engine.refuse_if_closed(Operation::Acquire)?;
    fits(spec, &engine.backend.info().capabilities)?;
    Ok(if is_gated(spec) { engine.gate.line(&spec.key) } else { None })
}
