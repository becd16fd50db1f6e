//! The two ends of the child: commands go in, tagged; answers come out in any order and find their way by the tag.
//!
//! A thread of its own reads, so nothing here needs a runtime, and a test's runtime is never blocked by the child.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    process::{ChildStdin, ChildStdout},
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
};

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;

/// A line of the child, as it is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Answer {
    tag: String,
    pub(crate) began: u64,
    pub(crate) ended: u64,
    pub(crate) value: Option<Value>,
    pub(crate) error: Option<String>,
    pub(crate) message: String,
    /// Only of the first line: which client this is to Redis, and which Redisson.
    pub(crate) client: String,
    pub(crate) redisson: String,
}

type Waiting = Arc<Mutex<Table>>;

#[derive(Debug, Default)]
struct Table {
    last: u64,
    closed: bool,
    senders: HashMap<String, oneshot::Sender<Answer>>,
}

/// Both ends.
#[derive(Debug)]
pub(crate) struct Pipe {
    input: Mutex<ChildStdin>,
    waiting: Waiting,
}

impl Pipe {
    /// Takes the ends. The first line, which says that the child is ready, comes out of the receiver.
    pub(crate) fn new(
        input: ChildStdin,
        output: ChildStdout,
    ) -> std::io::Result<(Self, mpsc::Receiver<Answer>)> {
        let waiting = Waiting::default();
        let (ready, first) = mpsc::channel();
        let table = Arc::clone(&waiting);
        thread::Builder::new().name("redisson".to_owned()).spawn(move || {
            read(BufReader::new(output), &table, &ready);
            let mut table = lock(&table);
            table.closed = true;
            table.senders.clear();
        })?;
        Ok((Self { input: Mutex::new(input), waiting }, first))
    }

    /// Sends a command. If the child is gone, the receiver says so.
    pub(crate) fn send(&self, command: &str) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        let Some(tag) = self.expect(sender) else { return receiver };
        let line = format!("{tag} {command}\n");
        let written = lock(&self.input).write_all(line.as_bytes());
        if written.is_err() {
            lock(&self.waiting).senders.remove(&tag);
        }
        receiver
    }

    fn expect(&self, sender: oneshot::Sender<Answer>) -> Option<String> {
        let mut table = lock(&self.waiting);
        if table.closed {
            return None;
        }
        table.last += 1;
        let tag = table.last.to_string();
        table.senders.insert(tag.clone(), sender);
        Some(tag)
    }
}

fn read(lines: impl BufRead, table: &Waiting, ready: &mpsc::Sender<Answer>) {
    for line in lines.lines().map_while(Result::ok) {
        // What is no answer is something the Java machine has to say for itself.
        let Ok(answer) = serde_json::from_str::<Answer>(&line) else { continue };
        if answer.tag == "ready" {
            drop(ready.send(answer));
        } else if let Some(sender) = lock(table).senders.remove(&answer.tag) {
            drop(sender.send(answer));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
