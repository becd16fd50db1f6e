//! Who holds what, written down as it happens.
//!
//! Virtual time stands still while anybody can run, so the ledger's time also counts events: of two at one moment the
//! later one is later. A belief that an operator or a shutdown has ended is ended here before either is asked for: its
//! holder may hear of it after the next one was granted, and that is no defect.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold_core::{ClaimId, Guard, time::Clock};
use leasehold_testkit::history::{Act, Asked, Event, Hit, Recorder, Window};

/// The history of one world. Clones write the same one.
#[derive(Clone)]
pub(crate) struct Ledger {
    pub(crate) recorder: Recorder,
    books: Arc<Mutex<Books>>,
}

#[derive(Default)]
struct Books {
    open: Vec<Line>,
    broken: HashSet<ClaimId>,
    closed: HashSet<usize>,
    suspended: Vec<Window>,
    next: u64,
}

/// One guard, from its grant to its end.
#[derive(Clone)]
struct Line {
    number: u64,
    client: usize,
    id: ClaimId,
    name: String,
    owner: u64,
    /// Whether it is believed in, as far as is written down.
    live: bool,
}

/// A guard that is written down, until this is dropped.
pub(crate) struct Entry {
    ledger: Ledger,
    number: u64,
    id: ClaimId,
}

impl Ledger {
    pub(crate) fn new(clock: Clock) -> Self {
        let last = AtomicU64::new(0);
        let now = move || {
            let next = last.load(Ordering::SeqCst) + 1;
            last.fetch_max(clock.now().as_nanos().max(next), Ordering::SeqCst);
            last.load(Ordering::SeqCst)
        };
        Self { recorder: Recorder::with_time(now), books: Arc::default() }
    }

    /// Somebody was granted this. A client that is shut down must not be told that it holds anything.
    pub(crate) fn granted(&self, asked: Asked, client: usize, owner: u64, guard: &Guard) -> Entry {
        let mut books = self.books();
        let is_closed = books.closed.contains(&client);
        assert!(!is_closed || guard.check().is_err(), "{:?} was granted after the shutdown", guard.name());
        let live = !is_closed && !books.broken.contains(&guard.id());
        if live {
            asked.granted(guard.fence(), guard.deadline().as_nanos());
        } else {
            asked.unknown();
        }
        books.next += 1;
        let (number, id, name) = (books.next, guard.id(), guard.name().to_owned());
        books.open.push(Line { number, client, id, name, owner, live });
        Entry { ledger: self.clone(), number, id }
    }

    /// The machine sleeps for a while.
    pub(crate) fn suspends(&self, clock: &Clock, duration: Duration) {
        let from = self.recorder.now();
        clock.suspend(duration);
        let (until, hit) = (self.recorder.now(), Hit::Stopped(std::process::id()));
        self.books().suspended.push(Window { kind: "suspend".to_owned(), hit, from, until });
    }

    /// When the machine slept.
    pub(crate) fn suspended(&self) -> Vec<Window> {
        self.books().suspended.clone()
    }

    /// An operator is about to break this acquisition.
    pub(crate) fn breaks(&self, id: ClaimId) {
        self.books().broken.insert(id);
        self.ends(|line| line.id == id);
    }

    /// This client is about to be shut down.
    pub(crate) fn closes(&self, client: usize) {
        self.books().closed.insert(client);
        self.ends(|line| line.client == client);
    }

    pub(crate) fn is_closed(&self, client: usize) -> bool {
        self.books().closed.contains(&client)
    }

    pub(crate) fn history(&self) -> Vec<Event> {
        self.recorder.history()
    }

    /// Every belief of these ends; an owner's beliefs in one name end together.
    fn ends(&self, which: impl Fn(&Line) -> bool) {
        let mut books = self.books();
        for line in books.open.iter_mut().filter(|line| line.live && which(line)) {
            line.live = false;
            self.recorder.noticed(&line.name, line.owner, Act::Lost);
        }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// Its deadline has moved.
    pub(crate) fn renewed(&self, deadline: u64) {
        if let Some(Line { name, owner, .. }) = self.line() {
            self.ledger.recorder.noticed(&name, owner, Act::Renewed { deadline });
        }
    }

    /// It was told that it is lost, and so were all others who entered with it.
    pub(crate) fn lost(&self) {
        self.ledger.ends(|line| line.id == self.id);
    }

    pub(crate) fn is_of(&self, guard: &Guard) -> bool {
        self.id == guard.id()
    }

    /// It is about to be let go: belief ends here.
    pub(crate) fn released(self) {
        if let Some(Line { name, owner, .. }) = self.line() {
            self.ledger.recorder.asked(&name, owner, Act::Release).unknown();
        }
    }

    /// What is written of it, while it is believed in.
    fn line(&self) -> Option<Line> {
        self.ledger.books().open.iter().find(|line| line.number == self.number && line.live).cloned()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.ledger.books().open.retain(|line| line.number != self.number);
    }
}
