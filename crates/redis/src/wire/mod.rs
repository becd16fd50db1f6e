//! The wire: one connection to one server, shared by all tasks of a client.
//!
//! When nothing is under way a request goes out at once, from the task that makes it. Otherwise it is queued, and one
//! task writes what is queued in one write, after stepping back once so that others that are ready can queue theirs, or
//! until there is enough. On a runtime with several threads that is worth more than half again as many requests per second.
//!
//! Promises: a request is sent at most once, unless the server says that it did not know the script, which proves that
//! nothing was done. One refused request fails no other of its write. An answer that does not come in time, or is lost
//! with the connection, is *unknown*; the connection is then given up and the next request makes a new one.
//!
//! Requests arrive in the order they were made by one task, those nobody waits for included: a request overtakes the
//! queue only when there is none.
//!
//! A wire may ask for confirmation by replicas: then every write ends with one `WAIT`, which stalls whatever comes after
//! it on the same connection. So there is one write at a time, of whatever was queued meanwhile. Such a wire is a second
//! one to the same server, for what needs it.

mod dial;
mod writer;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use leasehold_core::planted::{Bug, planted};
use redis::{Cmd, Pipeline, Value};
use tokio::sync::{Notify, mpsc, oneshot};

pub(crate) use self::dial::{Dialer, Find, Line, Pause, Whereabouts, chance};
use self::writer::Writer;
use crate::{config::Address, error::Fault, scripts::Script};

/// So many queued requests are worth a write. A server answers what it has read when it has done all of it, so if
/// everybody's requests went out together, it would rest while we work and we while it does: those who could queue later
/// go with the next write.
const ENOUGH: usize = 24;

/// One server's line for requests.
#[derive(Clone)]
pub(crate) struct Wire {
    orders: mpsc::UnboundedSender<Order>,
    traffic: Arc<Traffic>,
}

/// What callers see of the writing task.
#[derive(Debug)]
struct Traffic {
    /// Requests that are queued or under way.
    open: AtomicUsize,
    /// Of those, the ones that are queued.
    queued: AtomicUsize,
    /// Rings when so many are queued that there is no point in waiting for more.
    enough: Notify,
    /// The connection, while there is one.
    line: Mutex<Option<Line>>,
    patience: Duration,
    confirmation: Option<Confirmation>,
}

/// By how many replicas, and how long they may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Confirmation {
    pub(crate) replicas: u32,
    pub(crate) timeout: Duration,
}

/// A request under way that is not in the queue.
struct Direct<'a>(&'a Traffic);

impl Drop for Direct<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Where the answer to a request comes from.
enum Begun<'a> {
    /// Its own exchange, apart: that needs much room, and with many at a time hardly anybody takes this way.
    Alone(Pin<Box<dyn Future<Output = Result<Value, Fault>> + Send + 'a>>),
    /// The writing task.
    Queued(oneshot::Receiver<Result<Value, Fault>>),
}

enum Order {
    Send {
        command: Cmd,
        /// Said right before it, and not answered to anybody: a server that is being given a slot asks for that.
        before: Option<Cmd>,
        answer: Answer,
    },
    Close,
}

impl Wire {
    /// Starts the writing task on the current runtime. The connection is made when there is something to send.
    pub(crate) fn start(dialer: Dialer, confirmation: Option<Confirmation>) -> Self {
        let (orders, inbox) = mpsc::unbounded_channel();
        let patience = dialer.patience() + confirmation.map_or(Duration::ZERO, |asked| asked.timeout);
        let (open, queued, line) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::default());
        let traffic = Arc::new(Traffic { open, queued, enough: Notify::new(), line, patience, confirmation });
        let writer = Writer::new(dialer, inbox, traffic.clone());
        tokio::runtime::Handle::current().spawn(writer.run());
        Self { orders, traffic }
    }

    /// Sends a request and awaits its answer.
    pub(crate) async fn call(&self, command: Cmd) -> Result<Value, Fault> {
        match self.begin(command)? {
            Begun::Alone(answered) => answered.await,
            Begun::Queued(answered) => answered.await.unwrap_or(Err(Fault::Unknown(GONE))),
        }
    }

    /// Queues a request, or sends it at once if there is no other. Where replicas confirm, all go by the queue: the
    /// writing task lets only one `WAIT` be under way, and must know of it.
    fn begin(&self, command: Cmd) -> Result<Begun<'_>, Fault> {
        let nobody_before = self.traffic.open.fetch_add(1, Ordering::AcqRel) == 0;
        if nobody_before
            && self.traffic.confirmation.is_none()
            && let Some(line) = self.traffic.line()
        {
            return Ok(Begun::Alone(Box::pin(self.send_alone(Direct(&self.traffic), line, command))));
        }
        let (answer, answered) = oneshot::channel();
        self.order(Order::Send { command, before: None, answer: Some(answer) }, 1)?;
        Ok(Begun::Queued(answered))
    }

    async fn send_alone(&self, _direct: Direct<'_>, line: Line, command: Cmd) -> Result<Value, Fault> {
        let mut pipeline = Pipeline::with_capacity(2);
        pipeline.add_command(command);
        let mut values = self.traffic.exchange(line, pipeline, 1).await?;
        values.pop().unwrap_or(Err(Fault::Unknown(SILENT)))
    }

    /// As [`call`](Self::call), to a server that is only being given what the request is about.
    pub(crate) async fn call_asking(&self, command: Cmd) -> Result<Value, Fault> {
        self.traffic.open.fetch_add(2, Ordering::AcqRel);
        let (answer, answered) = oneshot::channel();
        let before = Some(redis::cmd("ASKING"));
        self.order(Order::Send { command, before, answer: Some(answer) }, 2)?;
        answered.await.unwrap_or(Err(Fault::Unknown(GONE)))
    }

    /// Sends a request whose answer nobody needs, before everything that is sent from now on.
    pub(crate) fn tell(&self, command: Cmd) {
        self.traffic.open.fetch_add(1, Ordering::AcqRel);
        // Closed: then there is nobody to tell.
        drop(self.order(Order::Send { command, before: None, answer: None }, 1));
    }

    fn order(&self, order: Order, commands: usize) -> Result<(), Fault> {
        let traffic = &self.traffic;
        let queued = traffic.queued.fetch_add(1, Ordering::AcqRel) + 1;
        self.orders.send(order).map_err(|_| {
            traffic.open.fetch_sub(commands, Ordering::AcqRel);
            traffic.queued.fetch_sub(1, Ordering::AcqRel);
            Fault::Closed
        })?;
        if queued == ENOUGH || queued == traffic.open.load(Ordering::Acquire) / 2 {
            traffic.enough.notify_one();
        }
        Ok(())
    }

    /// How long an answer may take.
    pub(crate) fn patience(&self) -> Duration {
        self.traffic.patience
    }

    /// The next request makes a new connection, unless this one leads there already.
    pub(crate) fn leave_for(&self, elsewhere: Option<&Address>) {
        if let Some(line) = &*self.traffic.shared()
            && elsewhere != Some(&line.to)
        {
            line.give_up();
        }
    }

    /// Runs a script. If the server does not have it, nothing was done: then it is sent with its text.
    pub(crate) async fn run(
        &self,
        script: &Script,
        fill: &(impl Fn(&mut Cmd) + Sync),
    ) -> Result<Value, Fault> {
        match self.call(script.by_digest(fill)).await {
            Err(fault) if fault.is_no_script() && planted(Bug::NoScriptUnknown) => {
                drop(self.call(redis::cmd("SCRIPT").arg("LOAD").arg(&script.text).clone()).await);
                Err(Fault::Unknown(SILENT))
            }
            Err(fault) if fault.is_no_script() => Box::pin(self.call(script.by_text(fill))).await,
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
        f.debug_struct("Wire").field("traffic", &self.traffic).finish_non_exhaustive()
    }
}

impl Traffic {
    /// The connection, if it is there and this is a place to use it: time-outs need a runtime.
    fn line(&self) -> Option<Line> {
        let line = self.shared().as_ref().filter(|line| !line.is_lost()).cloned();
        line.filter(|_| tokio::runtime::Handle::try_current().is_ok())
    }

    fn shared(&self) -> MutexGuard<'_, Option<Line>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One write and its answers, one for each request.
    async fn exchange(
        &self,
        mut line: Line,
        mut pipeline: Pipeline,
        mut count: usize,
    ) -> Result<Vec<Result<Value, Fault>>, Fault> {
        let confirmation = self.confirmation;
        #[cfg(feature = "planted-bugs")]
        let confirmation = crate::planted::confirmation(confirmation, &mut line).await;
        if let Some(asked) = confirmation {
            pipeline.cmd("WAIT").arg(asked.replicas).arg(asked.timeout.as_millis().max(1) as u64);
            count += 1;
        }
        let sent = line.connection.send_packed_commands(&pipeline, 0, count);
        let unknown = match tokio::time::timeout(self.patience, sent).await {
            Ok(Ok(values)) => {
                let answers = values.into_iter().map(|value| match value {
                    Value::ServerError(error) => Err(Fault::Refused(error)),
                    value => Ok(value),
                });
                let mut answers = answers.collect();
                if let Some(asked) = confirmation {
                    confirm(&mut answers, asked.replicas);
                }
                return Ok(answers);
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "the connection to Redis was lost");
                "the connection was lost before the answer came"
            }
            Err(_) => SILENT,
        };
        // Half-open connections never come back by themselves; the next request makes a new one.
        line.give_up();
        Err(Fault::Unknown(unknown))
    }
}

const SILENT: &str = "no answer came in time";
const GONE: &str = "the runtime of this store is gone";

type Answer = Option<oneshot::Sender<Result<Value, Fault>>>;

/// Marks the answers to a write that too few replicas have confirmed.
fn confirm(answers: &mut Vec<Result<Value, Fault>>, wanted: u32) {
    let confirmed = match answers.pop() {
        Some(Ok(Value::Int(replicas))) => u32::try_from(replicas).unwrap_or(0),
        _ => 0,
    };
    if confirmed < wanted {
        for answer in answers {
            if let Ok(value) = answer {
                let value = std::mem::replace(value, Value::Nil);
                *answer = Err(Fault::Unconfirmed { value, confirmed, wanted });
            }
        }
    }
}
