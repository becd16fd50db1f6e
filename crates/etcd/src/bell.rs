//! Wake-ups: watches, most of them of single keys, all of a store on one stream.
//!
//! A watch begins at the revision that said "busy", so nothing that happened since is missed, however late the watch is set
//! up; what happened up to that revision is known and does not ring. (It would be enough to begin at the next one, but a
//! server that has compacted its history at a deletion forgets it for watches that begin right there: etcd issue 18089.)
//! Whatever ends a watch rings its bell: an event, a compaction of its beginning, a stream that broke,
//! a member that lost its leader. Whoever is woken looks, and watches anew.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicI64, Ordering},
    },
};

use futures_util::stream;
use tokio::sync::{
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    oneshot,
};
use tonic::Streaming;

use crate::{
    error::Fault,
    names::Stretch,
    proto::{Event, WatchCancel, WatchCreate, WatchRequest, WatchResponse, WatchVerb},
    wire::{Wire, path},
};

/// What a server can be asked not to tell of.
const NO_PUT: i32 = 0;
const NO_DELETE: i32 = 1;

/// What to watch for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Anything that happens to this key.
    Key(Vec<u8>),
    /// Anything that is deleted from this stretch.
    Leaving(Stretch),
    /// Anything that is written in this stretch.
    Coming(Stretch),
}

/// All watches of a store.
#[derive(Debug)]
pub(crate) struct Belfry {
    wire: Arc<Wire>,
    next: AtomicI64,
    tower: Mutex<Tower>,
}

#[derive(Debug, Default)]
struct Tower {
    /// With the last revision that is known.
    bells: HashMap<i64, (i64, oneshot::Sender<Ring>)>,
    /// To the stream, while there is one.
    requests: Option<UnboundedSender<WatchRequest>>,
    /// How many streams there have been: the end of an older one is not the end of this.
    streams: u64,
}

/// Why a bell rang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ring {
    /// Something happened.
    Look,
    /// There is no stream to hear anything by.
    Deaf,
}

/// One watch. Dropping it ends the watch.
#[derive(Debug)]
pub(crate) struct Bell {
    belfry: Arc<Belfry>,
    id: i64,
    rung: oneshot::Receiver<Ring>,
}

impl Bell {
    /// Completes when the bell is rung.
    pub(crate) async fn rung(&mut self) -> Ring {
        (&mut self.rung).await.unwrap_or(Ring::Look)
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        let mut tower = self.belfry.tower();
        if tower.bells.remove(&self.id).is_some() {
            tower.send(WatchVerb::Cancel(WatchCancel { watch_id: self.id }));
        }
    }
}

impl Belfry {
    pub(crate) fn new(wire: Arc<Wire>) -> Self {
        Self { wire, next: AtomicI64::new(1), tower: Mutex::default() }
    }

    /// Watches for what happens after this revision.
    pub(crate) fn watch(self: &Arc<Self>, sight: &Sight, known: i64) -> Bell {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, rung) = oneshot::channel();
        let (key, range_end, filters) = match sight {
            Sight::Key(key) => (key.clone(), Vec::new(), Vec::new()),
            Sight::Leaving(stretch) => (stretch.key.clone(), stretch.end.clone(), vec![NO_PUT]),
            Sight::Coming(stretch) => (stretch.key.clone(), stretch.end.clone(), vec![NO_DELETE]),
        };
        let mut tower = self.tower();
        if tower.requests.is_none() {
            self.open(&mut tower);
        }
        tower.bells.insert(id, (known, sender));
        let watch = WatchCreate { key, range_end, start_revision: known, filters, watch_id: id };
        tower.send(WatchVerb::Create(watch));
        drop(tower);
        Bell { belfry: self.clone(), id, rung }
    }

    /// Ends the stream; all who wait look once more.
    pub(crate) fn close(&self) {
        self.tower().end(Ring::Look);
    }

    fn open(self: &Arc<Self>, tower: &mut Tower) {
        let (sender, requests) = unbounded_channel();
        tower.requests = Some(sender);
        tower.streams += 1;
        let (wire, belfry) = (self.wire.clone(), Arc::downgrade(self));
        tokio::runtime::Handle::current().spawn(listen(wire, belfry, tower.streams, requests));
    }

    fn heard(&self, response: &WatchResponse) {
        if response.created && !response.canceled {
            return;
        }
        let mut tower = self.tower();
        let known = tower.bells.get(&response.watch_id).map_or(0, |(known, _)| *known);
        let is_news = |event: &Event| event.kv.as_ref().is_none_or(|kv| kv.mod_revision > known);
        if !response.canceled && !response.events.iter().any(is_news) {
            return;
        }
        if let Some((_, bell)) = tower.bells.remove(&response.watch_id) {
            // Whoever waited may be gone.
            let _gone = bell.send(Ring::Look);
        }
        if !response.canceled {
            tower.send(WatchVerb::Cancel(WatchCancel { watch_id: response.watch_id }));
        }
    }

    fn tower(&self) -> MutexGuard<'_, Tower> {
        self.tower.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tower {
    fn send(&self, verb: WatchVerb) {
        if let Some(requests) = &self.requests {
            // A stream that has ended rings all its bells: nothing is lost with this request.
            let _ended = requests.send(WatchRequest { verb: Some(verb) });
        }
    }

    fn end(&mut self, ring: Ring) {
        self.requests = None;
        for (_, (_, bell)) in self.bells.drain() {
            let _gone = bell.send(ring);
        }
    }
}

/// The task of one stream, from its beginning to its end: at the latest when nobody has the belfry any more.
async fn listen(
    wire: Arc<Wire>,
    belfry: Weak<Belfry>,
    stream: u64,
    requests: UnboundedReceiver<WatchRequest>,
) {
    let ring = match hear(&wire, &belfry, requests).await {
        Ok(()) => Ring::Look,
        Err(fault) => {
            tracing::debug!(?fault, "watching ended");
            Ring::Deaf
        }
    };
    let Some(belfry) = belfry.upgrade() else { return };
    let mut tower = belfry.tower();
    if tower.streams == stream {
        tower.end(ring);
    }
}

async fn hear(
    wire: &Wire,
    belfry: &Weak<Belfry>,
    requests: UnboundedReceiver<WatchRequest>,
) -> Result<(), Fault> {
    let requests = stream::unfold(requests, |mut requests| async {
        let request = requests.recv().await?;
        Some((request, requests))
    });
    let (at, mut responses): (usize, Streaming<WatchResponse>) = wire.stream(path::WATCH, requests).await?;
    loop {
        match responses.message().await {
            // A watch that could not even be created has no id: all look again.
            Ok(Some(response)) if response.canceled && response.watch_id < 0 => return Ok(()),
            Ok(Some(response)) => match belfry.upgrade() {
                Some(belfry) => belfry.heard(&response),
                None => return Ok(()),
            },
            Ok(None) => return Ok(()),
            Err(status) => {
                wire.leave(at);
                return Err(Fault::of(&status));
            }
        }
    }
}
