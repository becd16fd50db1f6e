//! One leader at a time, for synchronous code.

use super::{GuardRef, wait};
use crate::{CallSite, Error, Health, Leader, Result, Span, State, backend::Loss};

front! {
    /// An election, for synchronous code; see [`leasehold::Election`](crate::Election).
    #[derive(Clone, Debug)]
    #[must_use = "an election does nothing until somebody campaigns or observes"]
    Election(crate::Election) like Election
    options {
        ttl(ttl: impl Into<Span>);
        wait(wait: impl Into<Span>);
        label(label: &str);
        template(template: &'static str);
        every(every: impl Into<Span>);
        asked_at(location: CallSite);
    }
    looks {
        name() -> &str;
        health() -> Health;
        observe() -> Leaders [leaders: Leaders(leaders)];
    }
    waits {
        campaign(value: impl AsRef<[u8]>) -> Result<Leadership> [leads: leads.map(Leadership)];
        try_campaign(value: impl AsRef<[u8]>) -> Result<Option<Leadership>> [leads: Ok(leads?.map(Leadership))];
        leader() -> Result<Option<Leader>>;
    }
}

impl Election {
    /// Campaigns, does the work on this thread, and resigns, whatever comes of the work.
    ///
    /// # Errors
    /// Those of the work; and, turned into the work's error type, those of campaigning. If the lead was lost before the
    /// work was done, the kind is `Lost` even though the work went on to its end: ask [`Leadership::check`] on the way.
    pub fn lead<T, E, F>(&self, value: impl AsRef<[u8]>, work: F) -> Result<T, E>
    where
        E: From<Error>,
        F: FnOnce(&Leadership) -> Result<T, E>,
    {
        let leadership = self.campaign(value)?;
        let done = work(&leadership).and_then(|value| leadership.check().map(|()| value).map_err(E::from));
        if let Err(error) = leadership.resign() {
            tracing::warn!(%error, "resigning after the work was done");
        }
        done
    }
}

front! {
    /// Proof of leading, for synchronous code. Dropping it, on any thread, gives the lead up in the background.
    #[derive(Debug)]
    #[must_use = "if unused the lead is given up at once"]
    Leadership(crate::Leadership) like Leadership
    looks {
        fence() -> u64;
        state() -> State;
        check() -> Result<()>;
        healthy() -> bool;
        guard() -> GuardRef<'_> [guard: GuardRef(guard)];
    }
    waits {
        proclaim(value: impl AsRef<[u8]>) -> Result<()>;
        lost() -> Loss;
    }
    ends {
        resign() -> Result<()>;
    }
}

/// The leaders of an election, one after the other, for synchronous code.
///
/// As an iterator it never ends: `None` within an item means that nobody leads.
#[derive(Debug)]
#[must_use = "it looks only when it is asked for the next"]
pub struct Leaders(pub(super) crate::Leaders);

impl Iterator for Leaders {
    type Item = Result<Option<Leader>>;

    /// Waits for [`next`](crate::Leaders::next).
    fn next(&mut self) -> Option<Self::Item> {
        Some(wait(self.0.next()))
    }
}
