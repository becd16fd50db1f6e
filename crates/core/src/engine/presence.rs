//! Presence: telling a store who holds and who waits, where it cannot see that by itself.
//!
//! Stores that keep a record have it all in the record and are told nothing. Others, whose layout has no room for a
//! label or a time, are told in batches by the keeper, and only of what has lasted for [`YOUNG`]: a lock that comes
//! and goes costs nothing. It is information for people; nothing is granted or refused by it, and what fails is told again
//! with the next sign of life.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use hashbrown::HashMap;

use super::time::Instant;
use crate::{
    backend::{ClaimSpec, Sign, Standing},
    id::ClaimId,
    sync::{Mutex, MutexGuard},
};

/// What is younger than this is not worth telling.
pub(super) const YOUNG: Duration = Duration::from_millis(250);

/// How often a client with something told gives a sign of life.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// What a client has told and is about to tell.
#[derive(Debug, Default)]
pub(super) struct Presence(Mutex<Signs>);

#[derive(Debug, Default)]
struct Signs {
    /// By the number of the acquisition: all are of one client.
    young: HashMap<u64, Present>,
    told: HashMap<u64, Present>,
    gone: Vec<Present>,
    last: Option<Instant>,
}

/// Somebody who holds or waits. There may be very many: what others are told is made of it only then.
#[derive(Clone, Debug)]
struct Present {
    spec: Arc<ClaimSpec>,
    fence: Option<u64>,
    since: Instant,
}

impl Present {
    fn standing(&self) -> Standing {
        let ClaimSpec { key, id, mode, label, location, .. } = &*self.spec;
        let (label, location) = (label.clone(), location.clone());
        Standing { key: key.clone(), id: *id, mode: *mode, fence: self.fence, label, location }
    }
}

impl Presence {
    /// Somebody holds or waits from now on; the same acquisition may wait first and hold then.
    pub(super) fn began(&self, spec: &Arc<ClaimSpec>, fence: Option<u64>, since: Instant) {
        let present = Present { spec: spec.clone(), fence, since };
        self.signs().young.insert(spec.id.serial(), present);
    }

    /// It holds and waits no more.
    pub(super) fn ended(&self, id: ClaimId) {
        let mut signs = self.signs();
        signs.young.remove(&id.serial());
        if let Some(present) = signs.told.remove(&id.serial()) {
            signs.gone.push(present);
        }
    }

    /// Whether there is anything to tell, now or soon.
    pub(super) fn is_empty(&self) -> bool {
        let signs = self.signs();
        signs.young.is_empty() && signs.told.is_empty() && signs.gone.is_empty()
    }

    /// What is to be told now; `None` if nothing is, not even that we live.
    pub(super) fn due(&self, now: Instant) -> Option<Vec<Sign>> {
        let mut signs = self.signs();
        let Signs { young, told, gone, last } = &mut *signs;
        let mut news: Vec<Sign> = gone.drain(..).map(|present| Sign::Ended(present.standing())).collect();
        for (serial, present) in young.extract_if(|_, present| present.since.until(now) >= YOUNG) {
            news.push(Sign::Stands { standing: present.standing(), age: present.since.until(now) });
            told.insert(serial, present);
        }
        let quiet = last.is_none_or(|last| last.until(now) >= HEARTBEAT);
        if news.is_empty() && (told.is_empty() || !quiet) {
            return None;
        }
        *last = Some(now);
        Some(news)
    }

    fn signs(&self) -> MutexGuard<'_, Signs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
