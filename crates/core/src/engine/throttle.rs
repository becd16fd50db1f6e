//! Waiting for a rate: by time alone.
//!
//! This is not the wait loop of `contend`, and cannot be: nobody gives a permit of a limiter back, so there is no bell
//! to wait for and nothing to withdraw; the store says to the millisecond when asking again can help, which that loop
//! would cut to its polling pause and spread; and what is won is not held, so there is nothing to keep. What is left is
//! to sleep as long as the store said and ask again, by the same id, so that an answer that was lost takes nothing twice.
//!
//! Those of one process who wait for one limiter stand behind each other, in the order they came: to the store they are
//! one. Across processes it is whoever asks first.

use std::{num::NonZeroU32, time::Duration};

use super::{Engine, closed, contend::Patience, gate::Place, time::Instant};
use crate::{
    backend::{Busy, RateAnswer, RateStep},
    error::{Error, ErrorKind, Operation, Result, Retry},
    key::Key,
};

/// How often a request whose answer was lost is asked again at once.
const TRIES: u32 = 3;

/// How soon one whose answer was lost asks again, and one who bears with a store that does not serve.
const SOON: Duration = Duration::from_millis(10);

/// One who wants permits of a limiter.
#[derive(Debug)]
pub(crate) struct Wanting<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) key: &'a Key,
    pub(crate) permits: NonZeroU32,
    pub(crate) patience: Patience,
    /// Errors that may pass are borne for this long without any answer from the store.
    pub(crate) bears: Duration,
}

impl Wanting<'_> {
    /// Takes the permits, or says what the store said when that does not help within our patience.
    pub(crate) async fn take(self) -> Result<RateAnswer> {
        let (engine, id) = (self.engine, self.engine.ids.next());
        let asked = RateStep::Take { id, permits: self.permits };
        if self.patience == Patience::None {
            return ask(engine, self.key, asked).await;
        }
        let _ticket = match engine.wait_ticket() {
            Ok(ticket) => ticket,
            Err(full) => return self.ask_only(asked, full).await,
        };
        let place = engine.limits.join(self.key, Busy::default());
        let turn = tokio::select! {
            biased;
            () = engine.closing() => return Err(closed(Operation::Acquire)),
            turn = self.patience.bear(&engine.clock, place.turn()) => turn.flatten(),
        };
        match turn {
            Some(_turn) => self.wait(asked, &place).await,
            None => engine.limits.line(self.key).as_ref().map(later).ok_or_else(unanswered),
        }
    }

    /// For one who may not wait: what can be had at once is, unless others wait for it.
    async fn ask_only(&self, asked: RateStep, full: Error) -> Result<RateAnswer> {
        if self.engine.limits.line(self.key).is_some() {
            return Err(full);
        }
        match self.ask_in_time(asked).await {
            Ok(RateAnswer::Later { .. }) => Err(full),
            settled => settled,
        }
    }

    async fn wait(&self, asked: RateStep, place: &Place<'_>) -> Result<RateAnswer> {
        let clock = &self.engine.clock;
        let mut unanswered = place.unanswered();
        loop {
            let sent = clock.now();
            let (answer, pause) = match self.ask_in_time(asked).await {
                Ok(RateAnswer::Later { after }) => {
                    unanswered = None;
                    place.told(Some(&busy(after)), clock.now());
                    (Ok(RateAnswer::Later { after }), after)
                }
                Err(error) if self.bears_on(&error, *unanswered.get_or_insert(sent)) => {
                    place.told(None, sent);
                    tracing::debug!(%error, "asking again");
                    (Err(error), SOON)
                }
                settled => return settled,
            };
            if self.is_over(clock.now().after(pause)) {
                return answer;
            }
            tokio::select! {
                biased;
                () = self.engine.closing() => return Err(closed(Operation::Acquire)),
                () = clock.pause(pause.max(Duration::from_millis(1))) => {}
            }
        }
    }

    /// A store that does not answer must not keep us beyond our patience.
    async fn ask_in_time(&self, asked: RateStep) -> Result<RateAnswer> {
        let answer = ask(self.engine, self.key, asked);
        let answer = self.patience.and_a_little().bear(&self.engine.clock, answer).await;
        answer.unwrap_or_else(|| Err(unanswered()))
    }

    fn bears_on(&self, error: &Error, unanswered: Instant) -> bool {
        error.retry() != Retry::No && unanswered.until(self.engine.clock.now()) < self.bears
    }

    fn is_over(&self, then: Instant) -> bool {
        matches!(self.patience, Patience::Until(end) if end < then)
    }
}

/// What those are told for whom it is too early.
pub(crate) fn busy(after: Duration) -> Busy {
    Busy { retry_after: Some(after), ..Busy::default() }
}

fn later(busy: &Busy) -> RateAnswer {
    RateAnswer::Later { after: busy.retry_after.unwrap_or(SOON) }
}

fn unanswered() -> Error {
    let message = "the store did not answer in time; the permits may have been taken all the same";
    Error::new(ErrorKind::Indeterminate, Operation::Acquire, message)
}

/// Takes a step on a limiter, asking again while the answer is not known: every step may be repeated.
pub(crate) async fn ask(engine: &Engine, key: &Key, step: RateStep) -> Result<RateAnswer> {
    let mut tries = TRIES;
    loop {
        tries -= 1;
        let (backend, key) = (engine.backend.clone(), key.clone());
        match engine.carry_on(async move { backend.rate(&key, step).await }).await {
            Err(error) if error.kind() == ErrorKind::Indeterminate && tries > 0 => {
                engine.clock.pause(SOON).await;
            }
            answer => return answer,
        }
    }
}
