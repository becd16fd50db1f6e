//! What workers write to while they hold a lock: the ground truth of lost updates.
//!
//! A server on a Unix socket with two cells per lock. `plain/NAME` takes every write: the last one wins. `fenced/NAME`
//! takes a request only if its fence is not smaller than the greatest it has seen, and an equal one only from the same
//! owner. That holds for *reads* too: a holder that has read under its fence must not be overtaken by an older holder's
//! write, or its own write would bury that one unseen.
//!
//! Every write and its verdict is in the register's own history. One line per request, one line per answer:
//!
//! ```text
//! read CELL OWNER FENCE              -> VALUE | stale
//! write CELL OWNER FENCE READ VALUE  -> ok | stale
//! ```

use std::{
    collections::HashMap,
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use leasehold_testkit::history::{Act, Recorder};

use crate::clock;

/// The number that the register's history bears.
pub const PROCESS: u32 = 0;

/// A running register. Its threads end with their connections.
#[derive(Debug)]
pub struct Register {
    socket: PathBuf,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    cells: Mutex<HashMap<String, Cell>>,
    recorder: Recorder,
}

#[derive(Debug, Default)]
struct Cell {
    value: u64,
    fence: u64,
    owner: u64,
}

#[derive(Clone, Copy)]
struct Request {
    owner: u64,
    fence: u64,
    write: Option<(u64, u64)>,
}

impl Register {
    /// Starts a register in this folder: its socket and its history are there.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn start(folder: &Path) -> io::Result<Self> {
        let recorder = Recorder::to_file(&folder.join("register.history"), PROCESS, clock::now)?;
        let socket = folder.join("register.socket");
        let listener = UnixListener::bind(&socket)?;
        let shared = Arc::new(Shared { cells: Mutex::default(), recorder });
        let serving = shared.clone();
        thread::Builder::new().name("register".to_owned()).spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = serving.clone();
                thread::spawn(move || drop(shared.serve(&stream)));
            }
        })?;
        Ok(Self { socket, shared })
    }

    /// Where it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Records what every cell holds in the end.
    pub fn close(&self) {
        let cells = self.shared.cells.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, cell) in cells.iter() {
            self.shared.recorder.asked(name, 0, Act::Read { value: cell.value }).done();
        }
    }
}

impl Shared {
    fn serve(&self, stream: &UnixStream) -> io::Result<()> {
        let mut answers = stream;
        for line in BufReader::new(stream).lines() {
            let line = line?;
            let (name, request) = parse(&line).ok_or_else(|| io::Error::other("no such request"))?;
            let answer = self.answer(name, request);
            answers.write_all(format!("{answer}\n").as_bytes())?;
        }
        Ok(())
    }

    fn answer(&self, name: &str, request: Request) -> String {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        let cell = cells.entry(name.to_owned()).or_default();
        let fenced = name.starts_with("fenced/");
        let taken = !fenced || cell.admits(request.owner, request.fence);
        if let Some((read, value)) = request.write {
            // What the plain cell took is not held against the fences: it does not look at them.
            let fence = if fenced { request.fence } else { 0 };
            // Recorded while the cells are locked: the order of the records is the order of the writes.
            let asked = self.recorder.asked(name, request.owner, Act::Write { read, value, fence });
            if taken {
                cell.value = value;
                asked.done();
            } else {
                asked.failed();
            }
        }
        match (taken, request.write) {
            (false, _) => "stale".to_owned(),
            (true, Some(_)) => "ok".to_owned(),
            (true, None) => cell.value.to_string(),
        }
    }
}

impl Cell {
    fn admits(&mut self, owner: u64, fence: u64) -> bool {
        if fence < self.fence || (fence == self.fence && owner != self.owner) {
            return false;
        }
        (self.fence, self.owner) = (fence, owner);
        true
    }
}

fn parse(line: &str) -> Option<(&str, Request)> {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |text: &str| text.parse::<u64>().ok();
    match words[..] {
        ["read", name, owner, fence] => {
            Some((name, Request { owner: number(owner)?, fence: number(fence)?, write: None }))
        }
        ["write", name, owner, fence, read, value] => {
            let write = Some((number(read)?, number(value)?));
            Some((name, Request { owner: number(owner)?, fence: number(fence)?, write }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use leasehold_testkit::history::{LostUpdate, lost_updates, read_file};

    use super::*;

    struct Talk(BufReader<UnixStream>);

    impl Talk {
        fn say(&mut self, line: &str) -> String {
            self.0.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
            let mut answer = String::new();
            self.0.read_line(&mut answer).unwrap();
            answer.trim_end().to_owned()
        }
    }

    fn open(folder: &Path) -> (Register, Talk) {
        let register = Register::start(folder).unwrap();
        let stream = UnixStream::connect(register.socket()).unwrap();
        (register, Talk(BufReader::new(stream)))
    }

    #[test]
    fn the_fenced_cell_refuses_whoever_is_behind_and_the_plain_one_takes_all() {
        let folder = tempfile::tempdir().unwrap();
        let (_register, mut talk) = open(folder.path());
        assert_eq!(talk.say("read fenced/a 1 5"), "0");
        assert_eq!(talk.say("write fenced/a 1 5 0 11"), "ok");
        assert_eq!(talk.say("read fenced/a 2 6"), "11");
        assert_eq!(talk.say("write fenced/a 1 5 11 12"), "stale");
        assert_eq!(talk.say("read fenced/a 3 6"), "stale");
        assert_eq!(talk.say("write fenced/a 2 6 11 13"), "ok");
        assert_eq!(talk.say("write plain/a 2 6 0 21"), "ok");
        assert_eq!(talk.say("write plain/a 1 5 0 22"), "ok");
        assert_eq!(talk.say("read plain/a 9 0"), "22");
    }

    #[test]
    fn its_history_shows_what_was_lost_and_what_is_there_in_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let (register, mut talk) = open(folder.path());
        talk.say("write plain/a 1 5 0 11");
        talk.say("write plain/a 2 6 0 12");
        talk.say("write fenced/a 2 6 0 31");
        talk.say("write fenced/a 1 5 0 32");
        register.close();
        let history = read_file(&folder.path().join("register.history")).unwrap();
        let lost = lost_updates(&history);
        assert!(matches!(&lost[0], LostUpdate::Fork { name, .. } if name == "plain/a"), "{lost:?}");
        assert!(!lost.iter().any(|lost| format!("{lost:?}").contains("fenced/")), "{lost:?}");
    }
}
