//! The four options every lock has, and the few besides: kept as given, checked once when the lock is asked for.

use std::{sync::Arc, time::Duration};

use crate::{
    engine::{acquire::Patience, hold::Keeping, measure::Series, time::Clock},
    error::{Error, Operation, Result},
    span::Span,
};

/// The lease if none is asked for.
pub(crate) const DEFAULT_TTL: Duration = Duration::from_secs(30);

/// The shortest `max_hold`.
pub(super) const MIN_MAX_HOLD: Duration = Duration::from_millis(100);

/// The largest cohort: a store whose fences follow a clock must not be made to give them out faster than that runs.
const MAX_COHORT: u32 = 64;

/// Longest label, in bytes.
const MAX_LABEL: usize = 512;

/// How a lock is to be acquired and kept.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) wait: Option<Span>,
    pub(crate) ttl: Span,
    pub(crate) max_hold: Option<Span>,
    pub(crate) renews: bool,
    pub(crate) fair: bool,
    /// How many of this process may hold the lock one after the other before the store has it back.
    pub(crate) cohort: u32,
    pub(crate) label: Option<Arc<str>>,
    /// The name without what varies in it.
    pub(crate) template: Option<&'static str>,
}

impl Options {
    pub(crate) fn with_ttl(ttl: Duration) -> Self {
        Self {
            wait: None,
            ttl: ttl.into(),
            max_hold: None,
            renews: true,
            fair: false,
            cohort: 1,
            label: None,
            template: None,
        }
    }

    /// No patience at all, if what was said of it can be read.
    pub(crate) fn no_patience(&self) -> Result<Patience> {
        duration("wait", self.wait.as_ref()).map(|_| Patience::None)
    }

    /// How long to stand in line from now: as asked, or else as the kind of acquisition has it.
    pub(crate) fn patience(&self, clock: &Clock, otherwise: Patience) -> Result<Patience> {
        Ok(match duration("wait", self.wait.as_ref())? {
            None => otherwise,
            Some(Duration::ZERO) => Patience::None,
            Some(wait) => Patience::Until(clock.now().after(wait)),
        })
    }

    /// The lease to ask for: never longer than `max_hold`; and how it is kept.
    pub(crate) fn lease(&self, series: Series) -> Result<(Duration, Keeping)> {
        let ttl = duration("ttl", Some(&self.ttl))?.unwrap_or(DEFAULT_TTL);
        let max_hold = duration("max_hold", self.max_hold.as_ref())?;
        if max_hold.is_some_and(|max_hold| max_hold < MIN_MAX_HOLD) {
            let message = format!("max_hold: {MIN_MAX_HOLD:?} is the least a lock can be held for");
            return Err(Error::config(Operation::Acquire, message));
        }
        let keeping = Keeping { renews: self.renews, max_hold, series };
        Ok((max_hold.map_or(ttl, |max_hold| ttl.min(max_hold)), keeping))
    }

    /// The fences to reserve: one for each of the cohort.
    pub(crate) fn fences(&self) -> Result<u64> {
        let cohort = self.cohort;
        let message = match cohort {
            1 => return Ok(1),
            2..=MAX_COHORT if self.fair => {
                "a cohort goes before those who came earlier elsewhere; take fair or cohort"
            }
            2..=MAX_COHORT if self.max_hold.is_some() => {
                "a cohort has one lease for all; it takes no max_hold"
            }
            2..=MAX_COHORT => return Ok(cohort.into()),
            _ => {
                return Err(Error::config(
                    Operation::Acquire,
                    format!("a cohort of {cohort}; 1 to {MAX_COHORT} are possible"),
                ));
            }
        };
        Err(Error::config(Operation::Acquire, message))
    }

    pub(crate) fn label(&self) -> Result<Option<Arc<str>>> {
        match &self.label {
            Some(label) if label.len() > MAX_LABEL => {
                let message = format!("the label has {} bytes; {MAX_LABEL} is the limit", label.len());
                Err(Error::config(Operation::Acquire, message))
            }
            label => Ok(label.clone()),
        }
    }
}

fn duration(option: &str, span: Option<&Span>) -> Result<Option<Duration>> {
    let checked = span.map(Span::read).transpose();
    checked.map_err(|message| Error::config(Operation::Acquire, format!("{option}: {message}")))
}
