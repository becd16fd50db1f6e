//! The wire: one connection to one server, shared by all tasks of a client.
//!
//! Requests are queued and one task writes them: it takes what is queued and sends it in one write. When nothing is
//! under way a request goes out at once; otherwise the task steps back once, so that others that are ready can queue
//! theirs. On a runtime with several threads that is worth more than half again as many requests per second.
//!
//! Promises: a request is sent at most once, unless the server says that it did not know the script, which proves that
//! nothing was done. One refused request fails no other of its write. An answer that does not come in time, or is lost
//! with the connection, is *unknown*; the connection is then given up and the next request makes a new one.
//!
//! Time-outs run in the writing task: whoever awaits an answer awaits a channel and nothing else, and so can do that
//! on any runtime, or none.

mod dial;

use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    pin::Pin,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use redis::{Cmd, Pipeline, RedisError, Value};
use tokio::sync::{mpsc, oneshot};

use self::dial::Line;
pub(crate) use self::dial::{Dialer, Pause};
use crate::{error::Fault, scripts::Script};

/// The most requests in one write.
const BATCH: usize = 512;

/// One server's line for requests.
#[derive(Clone)]
pub(crate) struct Wire {
    orders: mpsc::UnboundedSender<Order>,
}

enum Order {
    Send { command: Cmd, answer: Option<oneshot::Sender<Result<Value, Fault>>> },
    Close,
}

impl Wire {
    /// Starts the writing task on the current runtime. The connection is made when there is something to send.
    pub(crate) fn start(dialer: Dialer) -> Self {
        let (orders, inbox) = mpsc::unbounded_channel();
        let writer = Writer {
            dialer,
            inbox,
            line: None,
            under_way: FuturesUnordered::new(),
            pause: Pause::default(),
            refuses: None,
        };
        tokio::runtime::Handle::current().spawn(writer.run());
        Self { orders }
    }

    /// Sends a request and awaits its answer.
    pub(crate) async fn call(&self, command: Cmd) -> Result<Value, Fault> {
        let (answer, answered) = oneshot::channel();
        self.orders.send(Order::Send { command, answer: Some(answer) }).map_err(|_| Fault::Closed)?;
        answered.await.unwrap_or(Err(Fault::Unknown("the runtime of this store is gone")))
    }

    /// Sends a request whose answer nobody needs, before everything that is sent from now on.
    pub(crate) fn tell(&self, command: Cmd) {
        // Closed: then there is nobody to tell.
        drop(self.orders.send(Order::Send { command, answer: None }));
    }

    /// Runs a script. If the server does not have it, nothing was done: then it is sent with its text.
    pub(crate) async fn run(&self, script: &Script, fill: impl Fn(&mut Cmd)) -> Result<Value, Fault> {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&script.sha);
        fill(&mut command);
        match self.call(command).await {
            Err(fault) if fault.is_no_script() => {
                let mut command = redis::cmd("EVAL");
                command.arg(&script.text);
                fill(&mut command);
                self.call(command).await
            }
            answer => answer,
        }
    }

    /// Ends the connection; what is sent later is refused.
    pub(crate) fn close(&self) {
        drop(self.orders.send(Order::Close));
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("closed", &self.orders.is_closed()).finish()
    }
}

type Sending = Pin<Box<dyn Future<Output = ()> + Send>>;
type Answer = Option<oneshot::Sender<Result<Value, Fault>>>;

struct Writer {
    dialer: Dialer,
    inbox: mpsc::UnboundedReceiver<Order>,
    line: Option<Line>,
    under_way: FuturesUnordered<Sending>,
    pause: Pause,
    /// After a connection that failed: until when not to try again, and what went wrong.
    refuses: Option<(Instant, RedisError)>,
}

impl Writer {
    async fn run(mut self) {
        let mut batch = VecDeque::new();
        loop {
            tokio::select! {
                order = self.inbox.recv() => match order {
                    Some(Order::Send { command, answer }) => batch.push_back((command, answer)),
                    Some(Order::Close) | None => break,
                },
                Some(()) = self.under_way.next(), if !self.under_way.is_empty() => continue,
            }
            if !self.under_way.is_empty() {
                tokio::task::yield_now().await;
            }
            let closes = self.gather(&mut batch);
            self.send(&mut batch).await;
            if closes {
                break;
            }
        }
        self.inbox.close();
        while self.under_way.next().await.is_some() {}
        while let Some(order) = self.inbox.recv().await {
            if let Order::Send { answer, .. } = order {
                deliver(answer, Err(Fault::Closed));
            }
        }
    }

    /// Takes what is queued. Says whether the wire is to be closed after it.
    fn gather(&mut self, batch: &mut VecDeque<(Cmd, Answer)>) -> bool {
        while batch.len() < BATCH {
            match self.inbox.try_recv() {
                Ok(Order::Send { command, answer }) => batch.push_back((command, answer)),
                Ok(Order::Close) => return true,
                Err(_) => return false,
            }
        }
        false
    }

    async fn send(&mut self, batch: &mut VecDeque<(Cmd, Answer)>) {
        let line = match self.connected().await {
            Ok(line) => line,
            Err(error) => {
                for (_, answer) in batch.drain(..) {
                    deliver(answer, Err(Fault::NotSent(error.clone())));
                }
                return;
            }
        };
        let mut pipeline = Pipeline::with_capacity(batch.len());
        let mut answers = Vec::with_capacity(batch.len());
        for (command, answer) in batch.drain(..) {
            pipeline.add_command(command);
            answers.push(answer);
        }
        let patience = self.dialer.patience();
        self.under_way.push(Box::pin(exchange(line, pipeline, answers, patience)));
    }

    /// The connection, made anew if it is lost. Answers that come meanwhile are delivered meanwhile.
    async fn connected(&mut self) -> Result<Line, RedisError> {
        if let Some(line) = self.line.take_if(|line| !line.is_lost()) {
            self.line = Some(line.clone());
            return Ok(line);
        }
        if let Some((until, error)) = &self.refuses
            && Instant::now() < *until
        {
            return Err(error.clone());
        }
        let dialer = self.dialer.clone();
        let mut dialing = std::pin::pin!(dialer.commands());
        let made = loop {
            tokio::select! {
                made = &mut dialing => break made,
                Some(()) = self.under_way.next(), if !self.under_way.is_empty() => {}
            }
        };
        match made {
            Ok(line) => {
                self.pause.reset();
                self.refuses = None;
                self.line = Some(line.clone());
                Ok(line)
            }
            Err(error) => {
                self.refuses = Some((Instant::now() + self.pause.next(), error.clone()));
                tracing::debug!(%error, "no connection to Redis");
                Err(error)
            }
        }
    }
}

/// One write and its answers.
async fn exchange(mut line: Line, pipeline: Pipeline, answers: Vec<Answer>, patience: Duration) {
    let count = answers.len();
    let exchanged =
        tokio::time::timeout(patience, line.connection.send_packed_commands(&pipeline, 0, count)).await;
    let unknown = match exchanged {
        Ok(Ok(values)) => {
            for (answer, value) in answers.into_iter().zip(values) {
                deliver(
                    answer,
                    match value {
                        Value::ServerError(error) => Err(Fault::Refused(error)),
                        value => Ok(value),
                    },
                );
            }
            return;
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, "the connection to Redis was lost");
            "the connection was lost before the answer came"
        }
        Err(_) => "no answer came in time",
    };
    // Half-open connections never come back by themselves; the next request makes a new one.
    line.give_up();
    for answer in answers {
        deliver(answer, Err(Fault::Unknown(unknown)));
    }
}

fn deliver(answer: Answer, result: Result<Value, Fault>) {
    if let Some(answer) = answer {
        // Whoever asked may be gone.
        drop(answer.send(result));
    }
}
