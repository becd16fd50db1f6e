//! What a function wants to hold while it runs.

use std::sync::Arc;

use super::held::{Acquired, Holding};
use crate::{CallSite, Client, Error, ErrorKind, Lock, Operation, Owner, Result, Span, blocking};

/// One or more locks that a function wants, all of one kind.
#[derive(Debug)]
#[must_use = "nothing is held until it is acquired"]
pub struct Wanted {
    client: Result<Client>,
    /// Each with its template.
    names: Vec<(String, &'static str)>,
    label: &'static str,
    location: CallSite,
    kind: Kind,
    wait: Option<Span>,
    ttl: Option<Span>,
    max_hold: Option<Span>,
    reentrant: bool,
}

/// How a function holds its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Exclusive,
    Write,
    Fair,
    Read,
    Permits { take: u32, of: u32 },
}

impl Wanted {
    /// Exclusive locks on these names, each with its template; whoever finds them busy is shown the label.
    #[track_caller]
    pub fn new(
        client: Result<Client>,
        names: impl Into<Vec<(String, &'static str)>>,
        label: &'static str,
    ) -> Self {
        let (names, kind) = (names.into(), Kind::Exclusive);
        let location = CallSite::caller();
        Self { client, names, label, location, kind, wait: None, ttl: None, max_hold: None, reentrant: false }
    }

    /// As a reader holds them.
    pub fn read(mut self) -> Self {
        self.kind = Kind::Read;
        self
    }

    /// As a writer holds them.
    pub fn write(mut self) -> Self {
        self.kind = Kind::Write;
        self
    }

    /// First come, first served.
    pub fn fair(mut self) -> Self {
        self.kind = Kind::Fair;
        self
    }

    /// So many permits of so many.
    pub fn permits(mut self, take: u32, of: u32) -> Self {
        self.kind = Kind::Permits { take, of };
        self
    }

    /// How long to stand in line; for ever unless said.
    pub fn wait(mut self, wait: impl Into<Span>) -> Self {
        self.wait = Some(wait.into());
        self
    }

    /// The lease.
    pub fn ttl(mut self, ttl: impl Into<Span>) -> Self {
        self.ttl = Some(ttl.into());
        self
    }

    /// Where renewal stops.
    pub fn max_hold(mut self, max_hold: impl Into<Span>) -> Self {
        self.max_hold = Some(max_hold.into());
        self
    }

    /// May enter what a function further out in this task holds.
    pub fn reentrant(mut self) -> Self {
        self.reentrant = true;
        self
    }

    /// Acquires them all.
    ///
    /// # Cancel safety
    /// Dropping the future gives back in the background what was taken.
    pub async fn acquire(mut self) -> Result<Acquired> {
        let client = std::mem::replace(&mut self.client, Err(spent()))?;
        let outer = Holding::current();
        let owner = self.owner(&client, outer.as_deref())?;
        let mut set = client.set();
        for (name, template) in &self.names {
            set = set.with(self.lock(&client, name, owner.as_ref()).template(template));
        }
        if let Some(wait) = self.wait.take() {
            set = set.wait(wait);
        }
        let guards = Arc::new(set.acquire().await?);
        let (id, kind) = (client.who().client, self.kind);
        let holding = Holding { client: id, kind, owner, guards: Arc::downgrade(&guards), outer };
        Ok(Acquired::new(guards, holding))
    }

    /// Acquires them all, on this thread.
    pub fn acquire_here(self) -> Result<Acquired> {
        blocking::wait(self.acquire())
    }

    fn lock(&self, client: &Client, name: &str, owner: Option<&Owner>) -> Lock {
        let mut lock = match self.kind {
            Kind::Exclusive => client.lock(name),
            Kind::Fair => client.lock(name).fair(),
            Kind::Read => client.rwlock(name).read(),
            Kind::Write => client.rwlock(name).write(),
            Kind::Permits { take, of } => client.semaphore(name, of).permits(take),
        };
        lock = lock.label(self.label).asked_at(self.location.clone());
        if let Some(ttl) = &self.ttl {
            lock = lock.ttl(ttl.clone());
        }
        if let Some(max_hold) = &self.max_hold {
            lock = lock.max_hold(max_hold.clone());
        }
        owner.into_iter().fold(lock, Lock::owner)
    }

    /// Who enters: whoever holds for this task already, or somebody new. What this task holds and cannot enter is refused:
    /// it would wait for itself.
    fn owner(&self, client: &Client, outer: Option<&Holding>) -> Result<Option<Owner>> {
        let id = client.who().client;
        for (name, _) in &self.names {
            if outer.is_some_and(|outer| outer.bars(id, name, self.kind, self.reentrant)) {
                let message = match self.kind {
                    Kind::Permits { .. } => {
                        "this task holds so much of it already that it would wait for itself; take all permits at once"
                    }
                    _ => {
                        "this task holds it already and would wait for itself; write `reentrant` on both functions"
                    }
                };
                return Err(Error::new(ErrorKind::WouldDeadlock, Operation::Acquire, message).about(name));
            }
        }
        let ours = || outer.and_then(|outer| outer.owner_in(id)).unwrap_or_default();
        Ok(self.reentrant.then(ours))
    }
}

fn spent() -> Error {
    Error::new(ErrorKind::Internal, Operation::Acquire, "asked for twice")
}
