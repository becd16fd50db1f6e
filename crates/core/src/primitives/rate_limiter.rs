//! So many in so long.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use crate::{
    backend::{Rate, RateAnswer, RateStep, Share},
    client::Client,
    engine::{
        acquire::Patience,
        throttle::{self, Wanting},
    },
    error::{Error, ErrorKind, Operation, Result},
    key::Key,
    span::Span,
};

/// The shortest interval: what stores count in.
const SHORTEST: Duration = Duration::from_millis(1);

/// The longest interval, and the longest that a limiter nobody uses is kept.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// A rate limiter: so many permits in any stretch of so long, over all clients or for each.
///
/// The rate is kept in the store: whoever sets it, sets it for everybody who uses the name. A permit that is taken is
/// used up; it counts until the interval is over and cannot be given back. There is no lease and nothing to hold.
///
/// Who waits asks again when the store says that it can help. Waiters of one client are served in the order they came;
/// between clients it is whoever asks first, so one that wants many at once may wait long beside those that want few.
///
/// Not guaranteed: what happened right before a failover or a restart of the store may be forgotten with it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), leasehold_core::Error> {
/// # use leasehold_core::{Client, backend::Memory};
/// # let locks = Client::new(Memory::new());
/// let mails = locks.rate_limiter("mails").wait("5s");
/// mails.try_set_rate(100, "1m").await?;
/// mails.acquire(3).await?;
/// assert_eq!(mails.available().await?, 97);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a limiter does nothing until it is used"]
pub struct RateLimiter {
    client: Client,
    name: Arc<str>,
    share: Share,
    wait: Option<Span>,
    keep: Option<Span>,
}

impl RateLimiter {
    pub(crate) fn new(client: &Client, name: &str) -> Self {
        Self { client: client.clone(), name: name.into(), share: Share::All, wait: None, keep: None }
    }

    /// How long to wait. Without it [`acquire`](Self::acquire) waits for ever, and
    /// [`try_acquire`](Self::try_acquire) does not wait at all. What the store says cannot come in time is refused at
    /// once: nobody gains by sleeping for nothing.
    pub fn wait(mut self, wait: impl Into<Span>) -> Self {
        self.wait = Some(wait.into());
        self
    }

    /// A rate that is set from here is for each client by itself, not for all of them together.
    pub fn per_client(mut self) -> Self {
        self.share = Share::Each;
        self
    }

    /// A rate that is set from here is forgotten when nobody has used the limiter for this long, which must not be
    /// shorter than the interval. Without it a rate stays until it is removed.
    pub fn keep(mut self, keep: impl Into<Span>) -> Self {
        self.keep = Some(keep.into());
        self
    }

    /// Sets the rate, so many permits in so long, whatever it was. What was taken before counts no more.
    ///
    /// # Errors
    /// `Config` for a rate that makes no sense, `Conflict` if the name is in use as something else, `Unsupported` if
    /// the store has no limiters.
    ///
    /// # Cancel safety
    /// A request on its way is finished in the background.
    pub async fn set_rate(&self, permits: u32, per: impl Into<Span>) -> Result<()> {
        let client = self.client.who().client;
        let rate = self.rate_of(permits, &per.into()).map_err(|error| self.about(error))?;
        match self.step(RateStep::Set { rate, client }).await? {
            RateAnswer::Set => Ok(()),
            other => Err(self.misfit(other)),
        }
    }

    /// Sets the rate unless one is set; says whether it did.
    ///
    /// # Errors
    /// As for [`set_rate`](Self::set_rate).
    ///
    /// # Cancel safety
    /// A request on its way is finished in the background.
    pub async fn try_set_rate(&self, permits: u32, per: impl Into<Span>) -> Result<bool> {
        let client = self.client.who().client;
        let rate = self.rate_of(permits, &per.into()).map_err(|error| self.about(error))?;
        match self.step(RateStep::TrySet { rate, client }).await? {
            RateAnswer::Set => Ok(true),
            RateAnswer::Kept(_) => Ok(false),
            other => Err(self.misfit(other)),
        }
    }

    /// Takes so many permits, all or none, if they are there now or within [`wait`](Self::wait); says whether it did.
    ///
    /// # Errors
    /// `Conflict` if no rate is set or it never allows so many; `Indeterminate` if it is not known whether they were
    /// taken, after asking again: each call takes at most once.
    ///
    /// # Cancel safety
    /// Nothing is lost while it sleeps. A request on its way is finished in the background: the permits may then be
    /// used up.
    pub async fn try_acquire(&self, permits: u32) -> Result<bool> {
        Ok(matches!(self.take(permits, Patience::None).await?, RateAnswer::Taken))
    }

    /// Takes so many permits, all or none, waiting for ever or as long as [`wait`](Self::wait) says.
    ///
    /// # Errors
    /// As for [`try_acquire`](Self::try_acquire), and `Busy` if they are not there in time: its
    /// [`retry_after`](crate::backend::Busy::retry_after) says when asking again can help.
    ///
    /// # Cancel safety
    /// As for [`try_acquire`](Self::try_acquire).
    pub async fn acquire(&self, permits: u32) -> Result<()> {
        match self.take(permits, Patience::Forever).await? {
            RateAnswer::Later { after } => {
                Err(self.about(Error::used_up(Operation::Acquire, throttle::busy(after))))
            }
            _ => Ok(()),
        }
    }

    /// How many permits could be taken now.
    ///
    /// # Errors
    /// `Conflict` if no rate is set.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn available(&self) -> Result<u64> {
        match self.step(RateStep::Read { client: self.client.who().client }).await? {
            RateAnswer::Has { free, .. } => Ok(free),
            RateAnswer::Unset => Err(self.unset()),
            other => Err(self.misfit(other)),
        }
    }

    /// The rate that is set; `None` if none is.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn rate(&self) -> Result<Option<Rate>> {
        match self.step(RateStep::Read { client: self.client.who().client }).await? {
            RateAnswer::Has { rate, .. } => Ok(Some(rate)),
            RateAnswer::Unset => Ok(None),
            other => Err(self.misfit(other)),
        }
    }

    /// Removes the limiter; says whether there was one. Who waits for it is told that no rate is set.
    ///
    /// # Cancel safety
    /// A request on its way is finished in the background.
    pub async fn remove(&self) -> Result<bool> {
        match self.step(RateStep::Remove { client: self.client.who().client }).await? {
            RateAnswer::Removed => Ok(true),
            RateAnswer::Unset => Ok(false),
            other => Err(self.misfit(other)),
        }
    }

    async fn take(&self, permits: u32, otherwise: Patience) -> Result<RateAnswer> {
        let key = self.ready(Operation::Acquire)?;
        let Some(count) = NonZeroU32::new(permits) else {
            let message = "no permits are asked for; ask for one at least";
            return Err(self.about(Error::config(Operation::Acquire, message)));
        };
        let patience = self.patience(otherwise).map_err(|error| self.about(error))?;
        let engine = self.client.engine();
        let bears = self.client.ttl();
        let wanting = Wanting { engine, key: &key, permits: count, patience, bears };
        let answer = wanting.take().await.map_err(|error| self.about(error.during(Operation::Acquire)))?;
        match answer {
            RateAnswer::Taken | RateAnswer::Later { .. } => Ok(answer),
            RateAnswer::Unset => Err(self.unset()),
            RateAnswer::TooMany { rate } => {
                let message =
                    format!("{permits} permits are asked for at once, but the rate is {rate}; ask for less");
                Err(self.about(Error::new(ErrorKind::Conflict, Operation::Acquire, message)))
            }
            other => Err(self.misfit(other)),
        }
    }

    async fn step(&self, step: RateStep) -> Result<RateAnswer> {
        let key = self.ready(Operation::Rate)?;
        let answer = throttle::ask(self.client.engine(), &key, step).await;
        answer.map_err(|error| self.about(error.during(Operation::Rate)))
    }

    /// Refuses what cannot be sent.
    fn ready(&self, operation: Operation) -> Result<Key> {
        self.client.engine().refuse_if_closed(operation)?;
        let key = Key::new(self.client.prefix(), &self.name)?;
        let info = self.client.info();
        if !info.capabilities.rate {
            return Err(self.about(info.without_limiters().during(operation)));
        }
        Ok(key)
    }

    fn patience(&self, otherwise: Patience) -> Result<Patience> {
        Ok(match self.wait.as_ref().map(|wait| length("wait", wait)).transpose()? {
            None => otherwise,
            Some(Duration::ZERO) => Patience::None,
            Some(wait) => Patience::Until(self.client.engine().clock.now().after(wait)),
        })
    }

    fn rate_of(&self, permits: u32, per: &Span) -> Result<Rate> {
        let refused = |message: String| Err(Error::config(Operation::Rate, message));
        let per = length("per", per)?;
        let keep = self.keep.as_ref().map(|keep| length("keep", keep)).transpose()?;
        if permits == 0 {
            return refused("a rate of no permits lets nothing through; one is the least".into());
        }
        if !(SHORTEST..=LONGEST).contains(&per) {
            return refused(format!("per: {per:?} is not between {SHORTEST:?} and {LONGEST:?}"));
        }
        if let Some(keep) = keep.filter(|keep| !(per..=LONGEST).contains(keep)) {
            return refused(format!("keep: {keep:?} is not between the interval, {per:?}, and {LONGEST:?}"));
        }
        Ok(Rate { permits: permits.into(), per, share: self.share, keep })
    }

    fn about(&self, error: Error) -> Error {
        error.about(&self.name)
    }

    fn unset(&self) -> Error {
        let message = "no rate is set under this name; set one with set_rate or try_set_rate";
        self.about(Error::new(ErrorKind::Conflict, Operation::Rate, message))
    }

    fn misfit(&self, answer: RateAnswer) -> Error {
        let message = format!("the store gave an answer that does not fit: {answer:?}");
        self.about(Error::new(ErrorKind::Internal, Operation::Rate, message))
    }
}

fn length(option: &str, span: &Span) -> Result<Duration> {
    span.read().map_err(|message| Error::config(Operation::Rate, format!("{option}: {message}")))
}
