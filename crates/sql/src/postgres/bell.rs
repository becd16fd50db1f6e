//! Wake-ups from other machines: one connection that listens, while anybody waits.
//!
//! Whoever writes a row notifies those whose chances rose in the same statement, so they hear of it when it is committed.
//! A pooler that lends the listening session to others would take the notifications with it, so whoever begins to
//! listen first speaks to itself: what is not heard was not listened to, and waiters then look for themselves.
//!
//! Rings may be missed until we listen and while the connection is down, so each time we begin to listen all bells
//! ring once. A network may forget a connection without a word: while somebody waits, the one that listens has to answer
//! now and then, or it is taken for lost.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold_core::{ClaimId, ClientId};
use tokio::{
    sync::Notify,
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    connection::{Connection, Connector},
    error::{failed, not_connected_in_time},
};
use crate::server::{Tried, bell::Bells};

/// What the connection that listens says, at first and as a sign of life: to say it again changes nothing.
const LISTEN: &str = "LISTEN leasehold";

/// How long the server may take to answer, and our own word to come back.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often the connection that listens has to answer while somebody waits.
const BEAT: Duration = Duration::from_secs(5);

/// How long until a lost connection is made anew, at first and at most.
const REST: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How long until we try again where nothing was heard: a pooler stays one.
const DEAF: Duration = Duration::from_secs(300);

/// The task that listens. Ends when it is stopped or dropped.
#[derive(Debug)]
pub(super) struct Listener {
    hears: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Listener {
    /// Begins to listen, in the background.
    #[expect(clippy::disallowed_methods, reason = "it belongs to the store and ends with it")]
    pub(super) fn start(connector: Connector, bells: Bells) -> Self {
        let hears = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(listen(connector, bells, hears.clone()));
        Self { hears, task }
    }

    /// Whether rings of other machines come.
    pub(super) fn hears(&self) -> bool {
        self.hears.load(Ordering::Acquire)
    }

    pub(super) fn stop(&self) {
        self.hears.store(false, Ordering::Release);
        self.task.abort();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(connector: Connector, bells: Bells, hears: Arc<AtomicBool>) {
    let mut rest = REST.0;
    loop {
        match begin(&connector, &bells).await {
            Ok(Some(mut connection)) => {
                hears.store(true, Ordering::Release);
                bells.ring_all();
                rest = REST.0;
                last(&mut connection, &bells).await;
                hears.store(false, Ordering::Release);
                tracing::debug!(
                    "the connection that listens is gone; waiters look for themselves until it is back"
                );
                bells.ring_all();
            }
            Ok(None) => {
                tracing::info!(
                    "notifications do not reach us, as behind a pooler; waiters look for themselves"
                );
                rest = DEAF;
            }
            Err(failure) => {
                tracing::debug!(error = %failure.into_error(), "cannot listen for wake-ups");
                rest = (rest * 2).min(REST.1);
            }
        }
        sleep(rest).await;
    }
}

/// A connection that hears; `None` if it does not hear our own word.
async fn begin(connector: &Connector, bells: &Bells) -> Tried<Option<Connection>> {
    let word = format!("echo {}", ClientId::random());
    let echo = Arc::new(Notify::new());
    let ear = {
        let (bells, echo, word) = (bells.clone(), echo.clone(), word.clone());
        Arc::new(move |said: &str| {
            if said == word {
                echo.notify_one();
            }
            said.split(' ').filter_map(|id| id.parse::<ClaimId>().ok()).for_each(|id| bells.ring(id));
        })
    };
    let connection = connector.connect_hearing(ear).await?;
    tell(&connection, LISTEN).await?;
    // From another connection: behind a pooler our own word may come back by the session that we had for both.
    let other = connector.connect().await?;
    tell(&other, &format!("NOTIFY leasehold, '{word}'")).await?;
    drop(other);
    if timeout(PATIENCE, echo.notified()).await.is_ok() {
        return Ok(Some(connection));
    }
    // Whose session it was is not known; the likeliest is the one we had last.
    tell(&connection, "UNLISTEN leasehold").await?;
    Ok(None)
}

/// Completes when the connection has ended, or does not answer any more.
async fn last(connection: &mut Connection, bells: &Bells) {
    loop {
        tokio::select! {
            () = connection.ended() => return,
            () = sleep(BEAT) => {}
        }
        // While nobody waits there is nothing to miss.
        if bells.are_armed() && tell(connection, LISTEN).await.is_err() {
            return;
        }
    }
}

/// Has something done, if that does not take long: a connection on which nothing arrives would never say so.
async fn tell(connection: &Connection, words: &str) -> Tried<()> {
    let told = timeout(PATIENCE, connection.client.batch_execute(words)).await;
    told.map_err(|_| not_connected_in_time())?.map_err(failed)
}
