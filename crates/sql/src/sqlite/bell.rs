//! Bells: who releases tells who waits, so that a lock passes on without a poll.
//!
//! A wake-up goes to the waiters that the record names, in order, and stops at the first one reached that could have
//! the lock alone, so a release costs the same with one waiter and with a hundred. Waiters in this process are rung
//! directly, those of another by a datagram to its session (see `post`).
//!
//! All of it is a hint. A ring may be lost or come from a stranger; waiters look again at the store's polling pause,
//! which is also how the death of a holder is noticed: the dead ring nobody.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use leasehold_core::{
    ClaimId, ClientId,
    backend::{Bell, record::Wake},
};
use tokio::sync::Notify;

use super::post::{Mailbox, Post};

/// How many waiters one release tries to reach. The others look for themselves.
const REACH: usize = 16;

/// The bells of one open store.
#[derive(Debug, Default)]
pub(super) struct Bells {
    armed: Arc<Armed>,
    post: OnceLock<Option<Post>>,
    /// Our session's, from the first bell on that others may ring.
    mailbox: OnceLock<(ClientId, Option<Mailbox>)>,
}

/// The bells of those who wait in this process.
#[derive(Debug, Default)]
pub(super) struct Armed(Mutex<HashMap<ClaimId, Arc<Notify>>>);

impl Bells {
    /// Arms a bell for an acquisition. With a session, other processes can ring it too.
    pub(super) fn arm(&self, id: ClaimId, session: Option<ClientId>) -> SqliteBell {
        if let Some(session) = session {
            self.mailbox.get_or_init(|| {
                let armed = self.armed.clone();
                let ring = move |id| {
                    armed.ring(id);
                };
                (session, Mailbox::open(session, ring))
            });
        }
        let rope = Arc::new(Notify::new());
        self.armed.lock().insert(id, rope.clone());
        SqliteBell { id, rope, armed: self.armed.clone() }
    }

    /// Rings those whose chances rose.
    pub(super) fn ring(&self, wakes: &[Wake]) {
        for wake in wakes.iter().take(REACH) {
            let reached =
                self.armed.ring(wake.id) || wake.session.is_some_and(|session| self.send(session, wake.id));
            if reached && wake.alone {
                return;
            }
        }
    }

    /// Whether another process got the message. To write to ourselves about a bell we do not have is no use.
    fn send(&self, session: ClientId, id: ClaimId) -> bool {
        if self.mailbox.get().is_some_and(|(ours, _)| *ours == session) {
            return false;
        }
        self.post.get_or_init(Post::open).as_ref().is_some_and(|post| post.send(session, id))
    }
}

impl Armed {
    /// Whether there was such a bell.
    fn ring(&self, id: ClaimId) -> bool {
        let rope = self.lock().get(&id).cloned();
        rope.inspect(|rope| rope.notify_one()).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ClaimId, Arc<Notify>>> {
        // Nothing that could panic happens while the map is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes one claim of a SQLite store.
#[derive(Debug)]
pub struct SqliteBell {
    id: ClaimId,
    /// Keeps one ring for whoever looks later.
    rope: Arc<Notify>,
    armed: Arc<Armed>,
}

impl Bell for SqliteBell {
    async fn rung(&mut self) {
        self.rope.notified().await;
    }
}

impl Drop for SqliteBell {
    fn drop(&mut self) {
        self.armed.lock().remove(&self.id);
    }
}
