//! One leader at a time, what it says of itself, and those who watch.

use std::{borrow::Cow, sync::Arc, time::Duration};

use super::{
    Guard, Lock,
    health::{Health, Seat},
    lock::Outcome,
};
use crate::{
    backend::{Loss, Mode},
    call_site::CallSite,
    client::Client,
    engine::{
        acquire::Patience,
        hold::State,
        proclaimed::{Proclaimed, Said},
    },
    error::{Error, ErrorKind, Operation, Result},
    id::ClaimId,
    key::Key,
    span::Span,
    who::Who,
};

/// How often an observer looks, unless said.
const LOOK: Duration = Duration::from_secs(1);

/// An election: of many candidates one leads, until it resigns, dies, or can no longer renew its lease.
///
/// The one who leads holds the lock of that name, first come first served where the store has a line; so an operator
/// sees it, and can break it, like any other lock. What a leader proclaims of itself, its address say, lies in a cell
/// beside it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), leasehold_core::Error> {
/// # use leasehold_core::{Client, Error, backend::Memory};
/// # let locks = Client::new(Memory::new());
/// let election = locks.election("scheduler");
/// let leadership = election.campaign("10.0.0.7:8080").await?;
/// let leader = election.leader().await?.expect("somebody leads");
/// assert_eq!((leader.text(), leader.fence), ("10.0.0.7:8080".into(), leadership.fence()));
/// leadership.resign().await?;
/// assert!(election.leader().await?.is_none());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "an election does nothing until somebody campaigns or observes"]
pub struct Election {
    lock: Lock,
    every: Span,
    health: Health,
}

impl Election {
    #[track_caller]
    pub(crate) fn new(client: &Client, name: &str) -> Self {
        let lock = Lock::exclusive(client, name);
        let lock = if client.info().capabilities.fair { lock.fair() } else { lock };
        Self { lock, every: LOOK.into(), health: Health::default() }
    }

    /// The lease: how soon another may lead after this one has died.
    pub fn ttl(mut self, ttl: impl Into<Span>) -> Self {
        self.lock = self.lock.ttl(ttl);
        self
    }

    /// How long to campaign. Without it [`campaign`](Self::campaign) waits for ever.
    pub fn wait(mut self, wait: impl Into<Span>) -> Self {
        self.lock = self.lock.wait(wait);
        self
    }

    /// What the candidate is, for people to see beside its process and machine.
    pub fn label(mut self, label: &str) -> Self {
        self.lock = self.lock.label(label);
        self
    }

    /// What its numbers are called, for the feature `metrics`; see [`Lock::template`]. Say it where several elections have names
    /// that differ in digits only, and each is to be seen by itself.
    pub fn template(mut self, template: &'static str) -> Self {
        self.lock = self.lock.template(template);
        self
    }

    /// How often those who [observe](Self::observe) look. A second unless said.
    pub fn every(mut self, every: impl Into<Span>) -> Self {
        self.every = every.into();
        self
    }

    /// Where in the code the lead is asked for: the line that made this election, unless said. Operators see it.
    pub fn asked_at(mut self, location: CallSite) -> Self {
        self.lock = self.lock.asked_at(location);
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.lock.name()
    }

    /// For a health check: whether what this election and its clones won is renewed as it should be. It can be kept from
    /// before anybody campaigns until after; see [`Health`].
    pub fn health(&self) -> Health {
        self.health.clone()
    }

    /// Waits until this candidate leads, and proclaims the value.
    ///
    /// # Errors
    /// `Busy` when the wait is over, with who leads; `Unsupported` by a store without cells; any other kind as the
    /// store or the options have it. After an error this candidate does not lead.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the line; what it won is given back.
    pub async fn campaign(&self, value: impl AsRef<[u8]>) -> Result<Leadership> {
        self.stand()?;
        let guard = self.lock.acquire().await?;
        self.enter(guard, value.as_ref()).await
    }

    /// The same without waiting, or no longer than [`wait`](Self::wait) says; `None` if another leads.
    ///
    /// # Errors
    /// As for [`campaign`](Self::campaign), without `Busy`.
    ///
    /// # Cancel safety
    /// As for [`campaign`](Self::campaign).
    pub async fn try_campaign(&self, value: impl AsRef<[u8]>) -> Result<Option<Leadership>> {
        self.stand()?;
        match self.lock.ask(Patience::None).await? {
            Outcome::Held(guard) => self.enter(guard, value.as_ref()).await.map(Some),
            Outcome::Busy(_) => Ok(None),
        }
    }

    /// Campaigns, does the work while it leads, and resigns: the form to prefer. When the leadership is lost, the work is
    /// dropped where it stands, before it can take another step, and the error is of the kind `Lost`, as it is for work whose
    /// last step ends after the loss.
    ///
    /// # Errors
    /// Those of the work; and, turned into the work's error type, those of campaigning and the loss.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work and resigns in the background.
    pub async fn lead<T, E, F>(&self, value: impl AsRef<[u8]>, work: F) -> Result<T, E>
    where
        E: From<Error>,
        F: AsyncFnOnce(&Leadership) -> Result<T, E>,
    {
        let leadership = self.campaign(value).await?;
        let done = tokio::select! {
            biased;
            loss = leadership.lost() => return Err(Error::from(loss).about(self.name()).into()),
            done = work(&leadership) => done,
        };
        // Work that does not wait between the loss and its end was not stopped by it.
        let done = done.and_then(|value| leadership.check().map(|()| value).map_err(E::from));
        if let Err(error) = leadership.resign().await {
            tracing::warn!(%error, "resigning after the work was done");
        }
        done
    }

    /// Who leads, by the store's word at this moment.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn leader(&self) -> Result<Option<Leader>> {
        self.serves()?;
        let client = self.lock.client();
        // The value first: what was proclaimed before we asked who leads can only be of that one or of one before.
        let proclaimed = Proclaimed::of(client.engine(), &self.lock.key()?).read().await?;
        let state = client.inspect(self.name()).await?;
        let leads = state.into_iter().flat_map(|state| state.holders).find(|one| one.mode == Mode::Exclusive);
        Ok(leads.map(|holder| {
            let said = proclaimed.filter(|said| said.id == holder.id);
            // A store that is told who holds may not know the fence yet; the leader does.
            let fence = said.as_ref().map_or(holder.fence, |said| said.fence);
            Leader { id: holder.id, fence, who: holder.who, value: said.and_then(|said| said.value) }
        }))
    }

    /// The leaders, one after the other, beginning with the one of this moment.
    ///
    /// It looks every [so often](Self::every): a leader or a value that came and went in between is not seen.
    pub fn observe(&self) -> Leaders {
        Leaders { election: self.clone(), told: Told::Nothing, failed: false }
    }

    async fn enter(&self, guard: Guard, value: &[u8]) -> Result<Leadership> {
        let seat = self.health.take(guard.hold());
        guard.hold().leads();
        let leadership = Leadership { lock: self.lock.clone(), guard, _seat: seat };
        leadership.proclaim(value).await?;
        Ok(leadership)
    }

    /// From now on it is a candidate, if it can be one here.
    fn stand(&self) -> Result<()> {
        self.serves()?;
        self.lock.series(&self.lock.key()?).candidate();
        Ok(())
    }

    fn serves(&self) -> Result<()> {
        let info = self.lock.client().info();
        if info.capabilities.cells {
            return Ok(());
        }
        let message =
            format!("{} keeps no values, so nobody can proclaim one; elect on another store", info.scheme);
        Err(Error::new(ErrorKind::Unsupported, Operation::Cell, message).about(self.name()))
    }
}

impl Client {
    /// Names of elections whose leader proclaimed something, a page at a time; `cursor` comes from the page before. Some
    /// may have nobody who leads. A page may be short and still have a next one.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn elections(
        &self,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<String>, Option<String>)> {
        let ours = Key::beginning(self.prefix(), "")?;
        let page = self.backend().list_cells(Proclaimed::CELLS, cursor, limit.clamp(1, 1000)).await;
        let page = page.map_err(|error| error.during(Operation::Inspect))?;
        let name = |cell: &str| cell.strip_prefix(Proclaimed::CELLS)?.strip_prefix(&*ours).map(str::to_owned);
        Ok((page.cells.iter().filter_map(|cell| name(&cell.name)).collect(), page.next))
    }
}

/// Proof of leading. Dropping it gives the lead up in the background; [`resign`](Self::resign) waits for that.
#[derive(Debug)]
#[must_use = "if unused the lead is given up at once"]
pub struct Leadership {
    lock: Lock,
    guard: Guard,
    /// What a health check looks at, for as long as this lives.
    _seat: Seat,
}

impl Leadership {
    /// Proclaims another value.
    ///
    /// # Errors
    /// `Lost` if this one no longer leads, as far as it or the store knows.
    ///
    /// # Cancel safety
    /// What was on its way may be proclaimed or not.
    pub async fn proclaim(&self, value: impl AsRef<[u8]>) -> Result<()> {
        self.guard.check()?;
        let value = Some(value.as_ref().to_vec());
        let value = Said { fence: self.fence(), id: self.guard.id(), value };
        let cell = Proclaimed::of(self.lock.client().engine(), &self.lock.key()?);
        cell.write(&value).await.map_err(|error| error.about(self.lock.name()))
    }

    /// Greater than that of every earlier leader: pass it along with what the leader does.
    pub fn fence(&self) -> u64 {
        self.guard.fence()
    }

    /// Whether this one leads, by this machine's boot clock. No I/O.
    pub fn state(&self) -> State {
        self.guard.state()
    }

    /// An error of the kind `Lost` if this one no longer leads. No I/O.
    pub fn check(&self) -> Result<()> {
        self.guard.check()
    }

    /// `false` while the lease cannot be renewed, and once the lead is lost. No I/O. For a health check that is there before
    /// and after this leadership, see [`Election::health`].
    pub fn healthy(&self) -> bool {
        matches!(self.state(), State::Held)
    }

    /// Completes when the lead is lost, and says how.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn lost(&self) -> Loss {
        self.guard.lost().await
    }

    /// The guard of the lock that the leader holds.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Takes back what was proclaimed, and gives the lead up.
    ///
    /// # Errors
    /// As for [`Guard::release`]. A value that cannot be taken back is nobody's all the same.
    ///
    /// # Cancel safety
    /// Dropping the future gives the lead up in the background.
    pub async fn resign(self) -> Result<()> {
        let cell = Proclaimed::of(self.lock.client().engine(), &self.lock.key()?);
        if let Err(error) = cell.withdraw(self.fence(), self.guard.id()).await {
            tracing::debug!(%error, "a value of a leader that resigned stays behind");
        }
        self.guard.release().await
    }
}

/// Who leads.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Leader {
    /// Identity of its acquisition: what an operator names to break it.
    pub id: ClaimId,
    /// Its fence.
    pub fence: u64,
    /// Its process and machine.
    pub who: Arc<Who>,
    /// What it proclaimed; `None` if it has not come to that yet, or takes it back as it resigns.
    pub value: Option<Vec<u8>>,
}

impl Leader {
    /// What it proclaimed, as text; empty if it has not yet.
    pub fn text(&self) -> Cow<'_, str> {
        self.value.as_deref().map_or(Cow::Borrowed(""), String::from_utf8_lossy)
    }
}

/// The leaders of an election, one after the other.
#[derive(Debug)]
#[must_use = "it looks only when it is asked for the next"]
pub struct Leaders {
    election: Election,
    told: Told,
    /// The last look was in vain.
    failed: bool,
}

/// What an observer was told last.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Nothing,
    Nobody,
    Leader(ClaimId, Option<Vec<u8>>),
}

impl Leaders {
    /// The next: another leader, another value of the same, or `None` when nobody leads. The first call answers at once.
    ///
    /// # Errors
    /// Those of the store. Ask again to go on.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn next(&mut self) -> Result<Option<Leader>> {
        let every = self.election.every.read();
        let every = every.map_err(|message| Error::config(Operation::Inspect, message.to_owned()))?;
        // Not a loop that never rests.
        let every = every.max(Duration::from_millis(1));
        let clock = &self.election.lock.client().engine().clock;
        // Whoever asks again after an error would else ask without a rest, for as long as the store refuses at once.
        if self.failed {
            clock.pause(every).await;
        }
        loop {
            let looked = self.election.leader().await;
            self.failed = looked.is_err();
            let leader = looked?;
            let seen =
                leader.as_ref().map_or(Told::Nobody, |leader| Told::Leader(leader.id, leader.value.clone()));
            if self.told != seen {
                self.told = seen;
                return Ok(leader);
            }
            clock.pause(every).await;
        }
    }
}
