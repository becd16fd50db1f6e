//! Wait until so many things have happened.

use std::{sync::Arc, time::Duration};

use super::asked::Asked;
use crate::{
    backend::{LatchStep, Life, Mode},
    client::Client,
    engine::acquire::{Acquired, Patience, acquire},
    engine::leave,
    error::{Error, ErrorKind, Operation, Result},
    key::Key,
    span::Span,
};

/// A latch: a count that is armed once, counted down by anybody, and waited for by anybody.
///
/// A latch has no holder and no lease: an armed one stays until it is counted down. At zero it is gone, and may be
/// armed again.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), leasehold_core::Error> {
/// # use leasehold_core::{Client, backend::Memory};
/// # let locks = Client::new(Memory::new());
/// let ready = locks.latch("ready");
/// ready.arm(2).await?;
/// ready.count_down().await?;
/// ready.count_down().await?;
/// ready.wait().await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a latch does nothing until it is used"]
pub struct Latch {
    client: Client,
    name: Arc<str>,
}

impl Latch {
    pub(crate) fn new(client: &Client, name: &str) -> Self {
        Self { client: client.clone(), name: name.into() }
    }

    /// Sets the count, if the latch is not armed already. Says whether the count is now the one given: `false`
    /// means that it was armed with another.
    ///
    /// # Cancel safety
    /// A request on its way is finished in the background.
    pub async fn arm(&self, count: u64) -> Result<bool> {
        Ok(self.step(LatchStep::Arm { count }).await? == count)
    }

    /// Counts down by one and says what is left. At zero it stays at zero.
    ///
    /// # Errors
    /// `Indeterminate` if it is not known whether it counted, after asking again: each call counts at most once.
    ///
    /// # Cancel safety
    /// A request on its way is finished in the background: it has counted, or will have.
    pub async fn count_down(&self) -> Result<u64> {
        let id = self.client.engine().ids.next();
        self.step(LatchStep::CountDown { id }).await
    }

    /// The count; zero if the latch is not armed.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn count(&self) -> Result<u64> {
        self.step(LatchStep::Read).await
    }

    /// Waits until the count is zero.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn wait(&self) -> Result<()> {
        self.stand(None).await.map(|_opened| ())
    }

    /// Waits until the count is zero, but no longer than this; says whether it is.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn wait_for(&self, wait: impl Into<Span>) -> Result<bool> {
        self.stand(Some(wait.into())).await
    }

    /// Waiting for a latch is waiting like any other: for a claim that is granted when the latch is open.
    async fn stand(&self, wait: Option<Span>) -> Result<bool> {
        let mut lock = super::Lock::new(&self.client, &self.name, Asked::Mode(Mode::Open));
        if let Some(wait) = wait {
            lock = lock.wait(wait);
        }
        let order = lock.order(Life::Session, Patience::Forever)?;
        match acquire(self.client.engine(), order).await.map_err(|error| lock.failed(error))? {
            Acquired::Busy(_) => Ok(false),
            Acquired::Held(won) => {
                // Nothing is held; this removes what waiting may have left behind.
                let (hold, fence) = won.take();
                drop(leave::leave(&hold, Mode::Open, fence).await);
                Ok(true)
            }
        }
    }

    /// Takes a step, asking again by the same id while the answer is not known.
    async fn step(&self, step: LatchStep) -> Result<u64> {
        let engine = self.client.engine();
        let about = |error: Error| error.during(Operation::Latch).about(&self.name);
        engine.refuse_if_closed(Operation::Latch)?;
        let key = Key::new(self.client.prefix(), &self.name)?;
        if !engine.backend.info().capabilities.latch {
            let message = "this store has no latches; see the table of stores";
            return Err(about(Error::new(ErrorKind::Unsupported, Operation::Latch, message)));
        }
        let mut tries = 3;
        loop {
            tries -= 1;
            let (backend, key) = (engine.backend.clone(), key.clone());
            match engine.carry_on(async move { backend.latch(&key, step).await }).await {
                Err(error) if error.kind() == ErrorKind::Indeterminate && tries > 0 => {
                    engine.clock.pause(Duration::from_millis(10)).await;
                }
                answer => return answer.map_err(about),
            }
        }
    }
}
