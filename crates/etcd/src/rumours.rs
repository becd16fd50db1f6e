//! How a holder hears that its lock was broken: the mark that a break leaves is under its client's name, and is watched.
//!
//! One watch for a client. It rings once; then the marks are read, and watched from the revision they were read at, so
//! none is missed, however long nothing could be heard.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use leasehold_core::{
    ClaimId, ClientId,
    backend::{Rumour, Rumours},
};

use crate::{
    bell::{Ring, Sight},
    error::{Fault, Refusal},
    names::{self, Stretch},
    proto::{RangeRequest, RangeResponse},
    store::Shared,
    wire::path,
};

/// Before a server that could not be asked is asked again.
const PAUSE: Duration = Duration::from_secs(1);

struct Watcher {
    store: Arc<Shared>,
    marks: Stretch,
    /// Up to which revision all marks are known; zero if none was read.
    known: i64,
}

/// Listens for marks on what this client holds.
pub(crate) fn listen(store: Arc<Shared>, client: ClientId) -> Rumours {
    let watcher = Watcher { store, marks: names::breaks(client), known: 0 };
    let heard = stream::unfold(watcher, |mut watcher| async move {
        let ids = watcher.next().await?;
        Some((stream::iter(ids.into_iter().map(Rumour::Of)), watcher))
    });
    heard.flatten().boxed()
}

impl Watcher {
    /// The next that are marked; `None` if there is nothing to be heard any more.
    async fn next(&mut self) -> Option<Vec<ClaimId>> {
        let is_first = self.known == 0;
        if !is_first {
            let sight = Sight::Coming(self.marks.clone());
            if self.store.belfry.watch(&sight, self.known).rung().await == Ring::Deaf {
                tokio::time::sleep(PAUSE).await;
            }
        }
        loop {
            match self.read().await {
                Ok(found) => {
                    let ids = self.news(&found);
                    if ids.is_empty() && !is_first {
                        // Something other than a mark ended the watch, and may do so again.
                        tokio::time::sleep(PAUSE).await;
                    }
                    return Some(ids);
                }
                Err(Fault::Closed) => return None,
                Err(fault) if fault.refusal() == Some(Refusal::Rights) => {
                    tracing::debug!(?fault, "broken locks are noticed by renewals only");
                    return None;
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn read(&self) -> Result<RangeResponse, Fault> {
        let Stretch { key, end: range_end } = self.marks.clone();
        self.store.wire.call(path::RANGE, RangeRequest { key, range_end, ..RangeRequest::default() }).await
    }

    /// What was marked since it was read last.
    fn news(&mut self, found: &RangeResponse) -> Vec<ClaimId> {
        let new = found.kvs.iter().filter(|kv| kv.mod_revision > self.known);
        let ids = new.filter_map(|kv| names::broken_id(&kv.key)).collect();
        self.known = found.header.as_ref().map_or(0, |header| header.revision).max(1);
        ids
    }
}
