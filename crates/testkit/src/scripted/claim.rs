//! A claim of any backend, played by a script.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use leasehold_core::{
    Result,
    backend::{Attempt, Backend, Claim, ClaimSpec, Holds, Release, Renewal},
};
use tokio::{sync::Mutex, time::Instant};

use super::{
    Fault, Script, Verb,
    script::{answer_lost, refused},
};

/// One contender behind a script.
#[derive(Debug)]
pub(super) struct ScriptedClaim {
    backend: Arc<dyn Backend>,
    spec: Arc<ClaimSpec>,
    script: Script,
    /// Shared with requests that arrive late.
    inner: Arc<Mutex<Box<dyn Claim>>>,
    overdue: Arc<Mutex<Overdue>>,
    /// A ring that was heard late: it is not forgotten if the wait is dropped meanwhile.
    rung: Option<Instant>,
}

/// Late attempts: those that arrived, and whether one may still arrive.
#[derive(Debug, Default)]
struct Overdue {
    arrived: Vec<Box<dyn Claim>>,
    /// Released: what is still on its way finds nothing to win (C6).
    withdrawn: bool,
}

impl ScriptedClaim {
    pub(super) fn new(backend: Arc<dyn Backend>, spec: Arc<ClaimSpec>, script: Script) -> Self {
        let inner = Arc::new(Mutex::new(backend.claim(spec.clone())));
        Self { backend, spec, script, inner, overdue: Arc::default(), rung: None }
    }

    /// A late attempt is on its way or has arrived.
    fn is_overdue(&self) -> bool {
        let arrived = self.overdue.try_lock().map_or(true, |overdue| !overdue.arrived.is_empty());
        arrived || Arc::strong_count(&self.overdue) > 1
    }

    /// The same request once more, by a claim of its own: the one in hand may be waiting for its bell when it arrives.
    fn attempt_later(&self, delay: Duration) {
        let mut twin = self.backend.claim(self.spec.clone());
        let overdue = self.overdue.clone();
        self.script.send_later(delay, async move {
            let mut overdue = overdue.lock().await;
            if !overdue.withdrawn {
                drop(twin.attempt().await);
                overdue.arrived.push(twin);
            }
            Ok(())
        });
    }
}

impl Overdue {
    /// Removes what late attempts left, and stops those still on their way. Says whether there was anything.
    async fn withdraw(&mut self) -> Result<Option<Release>> {
        self.withdrawn = true;
        let mut found = None;
        while let Some(twin) = self.arrived.last_mut() {
            let release = twin.release().await?;
            self.arrived.pop();
            found = found.or((release == Release::Released).then_some(release));
        }
        Ok(found)
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Claim for ScriptedClaim {
    async fn attempt(&mut self) -> Result<Attempt> {
        let fault = self.script.draw(Verb::Attempt);
        self.script.pass().await;
        match fault {
            Fault::Ok => self.inner.lock().await.attempt().await,
            Fault::Err(kind) => Err(refused(kind)),
            Fault::Slow(delay) => {
                tokio::time::sleep(delay / 2).await;
                let answer = self.inner.lock().await.attempt().await;
                tokio::time::sleep(delay / 2).await;
                answer
            }
            Fault::Late(delay) => {
                self.attempt_later(delay);
                Err(answer_lost())
            }
            Fault::Lost => {
                drop(self.inner.lock().await.attempt().await);
                Err(answer_lost())
            }
            Fault::Never => std::future::pending().await,
        }
    }

    fn attempt_now(&mut self) -> Option<Result<Attempt>> {
        if self.script.plays(Verb::Attempt) {
            return None;
        }
        let answer = self.inner.try_lock().ok()?.attempt_now()?;
        self.script.draw(Verb::Attempt);
        Some(answer)
    }

    async fn changed(&mut self) -> Result<()> {
        let fault = self.script.draw(Verb::Changed);
        if let Fault::Err(kind) = fault {
            return Err(refused(kind));
        }
        if fault == Fault::Never {
            std::future::pending::<()>().await;
        }
        if self.rung.is_none() {
            let mut inner = self.inner.lock().await;
            inner.changed().await?;
            if fault == Fault::Lost {
                inner.changed().await?;
            }
            self.rung = Some(Instant::now());
        }
        if let (Fault::Slow(delay) | Fault::Late(delay), Some(rung)) = (fault, self.rung) {
            tokio::time::sleep_until(rung + delay).await;
        }
        self.rung = None;
        Ok(())
    }

    async fn recount(&mut self, holds: Holds) -> Result<Renewal> {
        let inner = self.inner.clone();
        self.script.play(Verb::Recount, async move { inner.lock().await.recount(holds).await }).await
    }

    async fn raise(&mut self, fence: u64) -> Result<Renewal> {
        let inner = self.inner.clone();
        self.script.play(Verb::Raise, async move { inner.lock().await.raise(fence).await }).await
    }

    async fn release(&mut self) -> Result<Release> {
        let (inner, overdue) = (self.inner.clone(), self.overdue.clone());
        let request = async move {
            // The claim first, which knows more; what a late request of it had won is the claim's as well.
            let release = inner.lock().await.release().await?;
            Ok(overdue.lock().await.withdraw().await?.unwrap_or(release))
        };
        self.script.play(Verb::Release, request).await
    }

    fn release_now(&mut self) -> Option<Result<Release>> {
        // After a late attempt there is more to release than the claim itself.
        if self.script.plays(Verb::Release) || self.is_overdue() {
            return None;
        }
        let answer = self.inner.try_lock().ok()?.release_now()?;
        self.script.draw(Verb::Release);
        Some(answer)
    }
}
