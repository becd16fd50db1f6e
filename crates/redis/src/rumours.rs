//! How a holder hears that its lock was broken: a break tells it on the channel of its client, in the same step.
//!
//! Messages are not kept for those who were away, so whenever listening begins, or begins anew, any lock may have been
//! broken. A server that does not let us listen there is not asked again: renewals tell the same, later.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use leasehold_core::{
    ClientId,
    backend::{Rumour, Rumours},
};

use crate::{
    bell::{Bell, MISSED, Ring},
    error::Fault,
    names,
    store::Shared,
};

struct Listener {
    store: Arc<Shared>,
    channel: String,
    /// While it listens.
    bell: Option<Bell>,
}

/// Listens for what is told to this client.
pub(crate) fn listen(store: Arc<Shared>, client: ClientId) -> Rumours {
    let listener = Listener { store, channel: names::breaks(client), bell: None };
    let heard = stream::unfold(listener, |mut listener| async move {
        let rumours = listener.next().await?;
        Some((stream::iter(rumours), listener))
    });
    heard.flatten().boxed()
}

impl Listener {
    /// The next that is heard; `None` if there is nothing to be heard any more.
    async fn next(&mut self) -> Option<Vec<Rumour>> {
        loop {
            let Some(bell) = &mut self.bell else {
                self.begin().await?;
                return Some(vec![Rumour::OfAny]);
            };
            match bell.rung().await {
                Ok(Ring::Look) => return Some(bell.words().iter().filter_map(|word| rumour(word)).collect()),
                Ok(Ring::Astray) => {
                    self.bell = None;
                    self.store.topology.look_around().await;
                }
                Err(_) => self.bell = None,
            }
        }
    }

    /// Subscribes, however long that takes: the ear waits between two tries.
    async fn begin(&mut self) -> Option<()> {
        loop {
            let mut bell = self.store.topology.hear(self.channel.clone());
            match bell.rung().await {
                Ok(Ring::Look) => {
                    self.bell = Some(bell);
                    return Some(());
                }
                Err(Fault::Closed) => return None,
                Err(Fault::NotSent(error)) if error.code() == Some("NOPERM") => {
                    tracing::debug!(%error, "broken locks are noticed by renewals only");
                    return None;
                }
                Ok(Ring::Astray) | Err(_) => self.store.topology.look_around().await,
            }
        }
    }
}

fn rumour(word: &str) -> Option<Rumour> {
    if word == MISSED { Some(Rumour::OfAny) } else { word.parse().ok().map(Rumour::Of) }
}
