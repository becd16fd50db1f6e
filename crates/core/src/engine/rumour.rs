//! What is heard of our own locks between renewals: looked into by the keeper, and never believed.
//!
//! Listening begins when a lock has been held for a while, once for a client, and costs what is acquired and released
//! quickly nothing at all. Whatever comes together is looked into together, and after that there is a rest: somebody who
//! sends rumours without end costs us a few renewals a second, and nobody a lock.

use std::{future::ready, panic::AssertUnwindSafe, time::Duration};

use futures_util::{StreamExt, stream::BoxStream};

use super::time::{Clock, Instant};
use crate::{
    backend::{Backend, Rumour},
    id::ClientId,
};

/// Whoever holds a lock for less has given it back before anybody could break it.
pub(super) const LASTING: Duration = Duration::from_secs(1);

/// The least time between two looks.
const REST: Duration = Duration::from_millis(50);

/// The most that is looked into together.
const TOGETHER: usize = 256;

/// The ear of one client.
#[derive(Default)]
pub(super) struct Listening {
    has_begun: bool,
    heard: Option<BoxStream<'static, Vec<Rumour>>>,
    rests_until: Option<Instant>,
}

impl Listening {
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Begins to listen, if the store has anything to be heard.
    pub(super) fn begin(&mut self, backend: &dyn Backend, client: ClientId) {
        self.has_begun = true;
        let Some(rumours) = backend.rumours(client) else { return };
        // A store that panics is heard of no more; the locks that are kept here go on.
        let rumours = AssertUnwindSafe(rumours).catch_unwind().filter_map(|heard| ready(heard.ok()));
        self.heard = Some(rumours.ready_chunks(TOGETHER).boxed());
    }

    /// Completes when there is something to look into. Dropping it loses nothing.
    pub(super) async fn next(&mut self, clock: &Clock) -> Vec<Rumour> {
        let Some(heard) = &mut self.heard else { return std::future::pending().await };
        if let Some(then) = self.rests_until {
            clock.sleep_until(then).await;
        }
        let Some(rumours) = heard.next().await else {
            self.heard = None;
            return Vec::new();
        };
        self.rests_until = Some(clock.now().after(REST));
        rumours
    }
}
