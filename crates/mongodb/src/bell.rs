//! Bells: who releases tells who waits, so that a lock passes on without a poll.
//!
//! A write names the waiters it wakes in the document itself, and every client that has somebody waiting follows one
//! change stream of the collection, which the server filters by the client's own name: a release costs the same with one
//! waiter and with a hundred. Waiters of this process are rung directly.
//!
//! All of it is a hint. Whenever the stream begins, or begins anew after it was lost, everybody is rung, so nothing that
//! happened meanwhile is missed. While there is no stream (a single server has none, and a user may lack the right to
//! it), those who wait look again by themselves.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt;
use leasehold_core::{
    ClaimId, ClientId,
    backend::{Bell, Polling, record::Wake},
    time::Clock,
};
use mongodb::{
    Collection,
    bson::{Document, doc},
    error::Result as Driven,
};
use tokio::{runtime::Handle, sync::Notify, task::AbortHandle};

use crate::connect::Kind;

/// How long to wait before a lost stream is begun anew.
const PAUSE: Duration = Duration::from_millis(500);

/// The bells of one open store.
#[derive(Debug)]
pub(crate) struct Bells {
    armed: Arc<Armed>,
    kind: Kind,
    locks: Collection<Document>,
    session: ClientId,
    /// Follows the stream, from the first bell on.
    listener: OnceLock<AbortHandle>,
}

/// The bells of those who wait in this process.
#[derive(Debug, Default)]
struct Armed {
    ropes: Mutex<HashMap<ClaimId, Arc<Notify>>>,
    /// Whether there is a stream.
    hears: AtomicBool,
}

impl Bells {
    pub(crate) fn new(kind: Kind, locks: Collection<Document>, session: ClientId) -> Self {
        Self { armed: Arc::default(), kind, locks, session, listener: OnceLock::new() }
    }

    /// Arms a bell for an acquisition.
    pub(crate) fn arm(&self, id: ClaimId) -> MongodbBell {
        if self.kind == Kind::Replicated {
            self.listener.get_or_init(|| {
                let (armed, locks, session) = (self.armed.clone(), self.locks.clone(), self.session);
                Handle::current().spawn(async move { armed.listen(&locks, session).await }).abort_handle()
            });
        }
        let rope = Arc::new(Notify::new());
        self.armed.ropes().insert(id, rope.clone());
        MongodbBell { id, rope, armed: self.armed.clone(), polling: Polling::new() }
    }

    /// Rings those of this process; the others hear of it from the server.
    pub(crate) fn ring(&self, wakes: &[Wake], session: ClientId) {
        for wake in wakes.iter().filter(|wake| wake.session == Some(session)) {
            if self.armed.ring(wake.id) && wake.alone {
                return;
            }
        }
    }

    /// Whether a stream tells of wake-ups; `None` where there can be none.
    pub(crate) fn hears(&self) -> Option<bool> {
        (self.kind == Kind::Replicated).then(|| self.listener.get().is_none() || self.armed.hears())
    }

    pub(crate) fn close(&self) {
        if let Some(listener) = self.listener.get() {
            listener.abort();
        }
    }
}

impl Drop for Bells {
    fn drop(&mut self) {
        self.close();
    }
}

impl Armed {
    /// Follows the stream for ever.
    async fn listen(&self, locks: &Collection<Document>, session: ClientId) {
        loop {
            if let Err(error) = self.follow(locks, session).await {
                tracing::debug!(%error, "no change stream; those who wait look for themselves");
            }
            self.hears.store(false, Ordering::Release);
            self.ring_all();
            Clock::boot().pause(PAUSE).await;
        }
    }

    async fn follow(&self, locks: &Collection<Document>, session: ClientId) -> Driven<()> {
        let ours = doc! { "$regex": session.to_string() };
        let wakes = doc! { "$match": { "$or": [
            { "updateDescription.updatedFields.wake": ours.clone() },
            { "operationType": "replace", "fullDocument.wake": ours },
        ] } };
        let mut stream = locks.watch().pipeline([wakes]).await?;
        self.hears.store(true, Ordering::Release);
        self.ring_all();
        while let Some(event) = stream.next().await {
            let event = event?;
            let updated = event.update_description.as_ref().map(|update| &update.updated_fields);
            let text =
                updated.or(event.full_document.as_ref()).and_then(|changed| changed.get_str("wake").ok());
            text.into_iter().flat_map(|text| meant_for(session, text)).for_each(|id| {
                self.ring(id);
            });
        }
        Ok(())
    }

    fn hears(&self) -> bool {
        self.hears.load(Ordering::Acquire)
    }

    /// Whether there was such a bell.
    fn ring(&self, id: ClaimId) -> bool {
        let rope = self.ropes().get(&id).cloned();
        rope.inspect(|rope| rope.notify_one()).is_some()
    }

    fn ring_all(&self) {
        self.ropes().values().for_each(|rope| rope.notify_one());
    }

    fn ropes(&self) -> MutexGuard<'_, HashMap<ClaimId, Arc<Notify>>> {
        // Nothing that could panic happens while the map is locked.
        self.ropes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The waiters of this session that a write names: `TOKEN SESSION/CLAIM SESSION/CLAIM`.
fn meant_for(session: ClientId, text: &str) -> impl Iterator<Item = ClaimId> {
    let ours = format!("{session}/");
    text.split(' ').skip(1).filter_map(move |word| word.strip_prefix(&ours)?.parse().ok())
}

/// Wakes one claim of a MongoDB store.
#[derive(Debug)]
pub struct MongodbBell {
    id: ClaimId,
    /// Keeps one ring for whoever looks later.
    rope: Arc<Notify>,
    armed: Arc<Armed>,
    polling: Polling,
}

impl Bell for MongodbBell {
    async fn rung(&mut self) {
        if self.armed.hears() {
            // A stream that is lost rings everybody.
            return self.rope.notified().await;
        }
        tokio::select! {
            () = self.rope.notified() => {}
            () = self.polling.rung() => {}
        }
    }
}

impl Drop for MongodbBell {
    fn drop(&mut self) {
        self.armed.ropes().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_waiters_are_rung() {
        let (ours, other) = (ClientId::random(), ClientId::random());
        let text = format!("{other}:7 {other}/{other}:1 {ours}/{other}:2 {ours}/{ours}:3 {ours}/nonsense");
        let rung: Vec<String> = meant_for(ours, &text).map(|id| id.to_string()).collect();
        assert_eq!(rung, [format!("{other}:2"), format!("{ours}:3")]);
    }
}
