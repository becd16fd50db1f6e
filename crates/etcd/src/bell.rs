//! Wake-ups: watches, most of them of single keys, all of a store on one stream.
//!
//! A watch begins after the revision that said "busy", so nothing that happened since is missed, however late the watch is
//! set up. Most often nothing has: then it hears at once of what comes. Where something was written meanwhile, the server
//! puts it aside, to tell what it missed within a tenth of a second; and if it has compacted its history at a deletion, it
//! forgets that one for watches that begin right there (etcd issue 18089). So that one is given up for another, which begins
//! at the revision that is known and would be refused.
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
    /// By the first of the two ids that each has.
    bells: HashMap<i64, Watched>,
    /// To the stream, while there is one.
    requests: Option<UnboundedSender<WatchRequest>>,
    /// How many streams there have been: the end of an older one is not the end of this.
    streams: u64,
}

/// What a bell is rung by.
#[derive(Debug)]
struct Watched {
    /// The last revision that is known.
    known: i64,
    watch: WatchCreate,
    bell: oneshot::Sender<Ring>,
}

/// A bell's id of the watch that is made first, and of the one that may take its place.
const WATCHES: i64 = 2;

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
        if let Some(Watched { watch, .. }) = tower.bells.remove(&self.id) {
            tower.send(WatchVerb::Cancel(WatchCancel { watch_id: watch.watch_id }));
        }
    }
}

impl Belfry {
    pub(crate) fn new(wire: Arc<Wire>) -> Self {
        Self { wire, next: AtomicI64::new(WATCHES), tower: Mutex::default() }
    }

    /// Watches for what happens after this revision.
    pub(crate) fn watch(self: &Arc<Self>, sight: &Sight, known: i64) -> Bell {
        let id = self.next.fetch_add(WATCHES, Ordering::Relaxed);
        let (bell, rung) = oneshot::channel();
        let (key, range_end, filters) = match sight {
            Sight::Key(key) => (key.clone(), Vec::new(), Vec::new()),
            Sight::Leaving(stretch) => (stretch.key.clone(), stretch.end.clone(), vec![NO_PUT]),
            Sight::Coming(stretch) => (stretch.key.clone(), stretch.end.clone(), vec![NO_DELETE]),
        };
        let mut tower = self.tower();
        if tower.requests.is_none() {
            self.open(&mut tower);
        }
        let watch = WatchCreate { key, range_end, start_revision: known + 1, filters, watch_id: id };
        tower.send(WatchVerb::Create(watch.clone()));
        tower.bells.insert(id, Watched { known, watch, bell });
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
        let mut tower = self.tower();
        let id = response.watch_id - response.watch_id % WATCHES;
        let Some(watched) = tower.bells.get_mut(&id) else { return };
        if watched.watch.watch_id != response.watch_id {
            // Of one that was given up.
            return;
        }
        let known = watched.known;
        if response.created && !response.canceled {
            let is_late = response.header.as_ref().is_some_and(|header| header.revision > known);
            if is_late && watched.watch.start_revision > known {
                let given_up = response.watch_id;
                (watched.watch.start_revision, watched.watch.watch_id) = (known, given_up + 1);
                let other = watched.watch.clone();
                tower.send(WatchVerb::Cancel(WatchCancel { watch_id: given_up }));
                tower.send(WatchVerb::Create(other));
            }
            return;
        }
        let is_news = |event: &Event| event.kv.as_ref().is_none_or(|kv| kv.mod_revision > known);
        if !response.canceled && !response.events.iter().any(is_news) {
            return;
        }
        if let Some(watched) = tower.bells.remove(&id) {
            // Whoever waited may be gone.
            let _gone = watched.bell.send(Ring::Look);
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
        for (_, watched) in self.bells.drain() {
            let _gone = watched.bell.send(ring);
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
