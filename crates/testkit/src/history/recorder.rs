//! Writing a history down while it happens.
//!
//! One recorder per process, shared by its tasks. In memory, recording takes a mutex for as long as a push to a vector
//! does; it never blocks on anything else and never allocates but for the event, so it disturbs the run little. To a
//! file, each event is one write of one line: a process that is killed has told all that it did but the last.

use std::{
    fs::File,
    io::{self, Write as _},
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use super::{Act, Event, Phase};

/// Where a process writes what its clients do. Clones write to the same history.
#[derive(Clone)]
pub struct Recorder(Arc<Shared>);

struct Shared {
    process: u32,
    now: Box<dyn Fn() -> u64 + Send + Sync>,
    next: AtomicU64,
    events: Mutex<Sink>,
}

enum Sink {
    Memory(Vec<Event>),
    File(File),
}

impl Recorder {
    /// A recorder whose time is this process's monotonic clock, from now on.
    pub fn new() -> Self {
        let start = Instant::now();
        Self::with_time(move || start.elapsed().as_nanos() as u64)
    }

    /// A recorder on another clock: a test's virtual one, or the machine's, which other processes share.
    pub fn with_time(now: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self::to(Sink::Memory(Vec::new()), std::process::id(), now)
    }

    /// A recorder that writes to a new file, one line per event and at once. The process is a number of the caller's
    /// choice: the operating system may give an id twice in a long run.
    ///
    /// # Errors
    /// If the file is there already or cannot be made.
    pub fn to_file(
        file: &Path,
        process: u32,
        now: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Ok(Self::to(Sink::File(File::create_new(file)?), process, now))
    }

    fn to(sink: Sink, process: u32, now: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        let (next, events) = (AtomicU64::new(1), Mutex::new(sink));
        Self(Arc::new(Shared { process, now: Box::new(now), next, events }))
    }

    /// Records that something is about to be asked. Call it before the request; what it returns records the answer.
    #[must_use = "without an answer the outcome stays unknown"]
    pub fn asked(&self, name: &str, owner: u64, act: Act) -> Asked {
        let operation = self.0.next.fetch_add(1, Ordering::Relaxed);
        let asked = Asked { recorder: self.clone(), operation, name: name.to_owned(), owner, act };
        asked.record(Phase::Asked, act);
        asked
    }

    /// Records something nobody asked for: a loss, a renewal in the background.
    pub fn noticed(&self, name: &str, owner: u64, act: Act) {
        let operation = self.0.next.fetch_add(1, Ordering::Relaxed);
        Asked { recorder: self.clone(), operation, name: name.to_owned(), owner, act }
            .record(Phase::Noticed, act);
    }

    /// All that was recorded so far, in the order of its times. What went to a file is read with
    /// [`read_file`](super::read_file).
    pub fn history(&self) -> Vec<Event> {
        let mut events = match &*self.0.events.lock().unwrap_or_else(PoisonError::into_inner) {
            Sink::Memory(events) => events.clone(),
            Sink::File(_) => Vec::new(),
        };
        events.sort_by_key(|event| event.at);
        events
    }

    /// The history's clock.
    pub fn now(&self) -> u64 {
        (self.0.now)()
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("process", &self.0.process).finish_non_exhaustive()
    }
}

/// A request whose answer is not recorded yet. Dropped without one, its outcome stays unknown for ever.
#[derive(Debug)]
pub struct Asked {
    recorder: Recorder,
    operation: u64,
    name: String,
    owner: u64,
    act: Act,
}

impl Asked {
    /// It happened.
    pub fn done(self) {
        self.record(Phase::Done, self.act);
    }

    /// The lock was granted, with this fence and until this deadline on the history's clock.
    pub fn granted(self, fence: u64, deadline: u64) {
        self.record(Phase::Done, Act::Granted { fence, deadline });
    }

    /// The holder asked itself, and still believed, until this deadline on the history's clock.
    pub fn held(self, deadline: u64) {
        self.record(Phase::Done, Act::Held { deadline });
    }

    /// It did not happen.
    pub fn failed(self) {
        self.record(Phase::Failed, self.act);
    }

    /// Nobody knows whether it happened.
    pub fn unknown(self) {
        self.record(Phase::Unknown, self.act);
    }

    fn record(&self, phase: Phase, act: Act) {
        let shared = &self.recorder.0;
        let (process, operation, owner) = (shared.process, self.operation, self.owner);
        let mut sink = shared.events.lock().unwrap_or_else(PoisonError::into_inner);
        // Read within the mutex, so that the order of a process's events is the order of their times.
        let at = (shared.now)();
        let event = Event { at, process, operation, phase, name: self.name.clone(), owner, act };
        match &mut *sink {
            Sink::Memory(events) => events.push(event),
            Sink::File(file) => {
                // A history with a hole proves nothing, so a full disk ends the run here.
                file.write_all(format!("{event}\n").as_bytes()).expect("a history can be written down");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Mode, read_file};

    #[test]
    fn an_answer_bears_the_operation_of_its_question() {
        let recorder = Recorder::new();
        let asked = recorder.asked("a", 3, Act::Acquire { mode: Mode::Shared });
        asked.granted(9, 100);
        recorder.noticed("a", 3, Act::Lost);
        let history = recorder.history();
        assert_eq!(history.len(), 3);
        assert_eq!(history[0].operation, history[1].operation);
        assert_ne!(history[1].operation, history[2].operation);
        assert_eq!(
            (history[1].phase, history[1].act),
            (Phase::Done, Act::Granted { fence: 9, deadline: 100 })
        );
    }

    #[test]
    fn a_file_has_every_event_at_once_and_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history");
        let recorder = Recorder::to_file(&file, 7, || 5).unwrap();
        recorder.asked("a", 3, Act::Release).done();
        recorder.asked("a", 3, Act::Check).held(9);
        let history = read_file(&file).unwrap();
        assert_eq!(history.len(), 4);
        assert_eq!((history[3].process, history[3].at, history[3].act), (7, 5, Act::Held { deadline: 9 }));
        assert!(Recorder::to_file(&file, 7, || 5).is_err());
    }
}
