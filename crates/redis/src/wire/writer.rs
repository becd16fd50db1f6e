//! The writing task: gathers what is queued, sends it in one write, hands out the answers.
//!
//! It makes the connection when there is something to send and none is there; after one that failed it refuses for a while,
//! longer and longer. It never sends anything twice.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use redis::{Cmd, Pipeline, RedisError, Value};
use tokio::sync::mpsc;

use super::{
    Answer, Order, Traffic,
    dial::{Dialer, Line, Pause},
};
use crate::error::Fault;

/// The most requests in one write.
const BATCH: usize = 512;

type Sending = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The writing task of a wire.
pub(super) struct Writer {
    dialer: Dialer,
    inbox: mpsc::UnboundedReceiver<Order>,
    traffic: Arc<Traffic>,
    under_way: FuturesUnordered<Sending>,
    pause: Pause,
    /// After a connection that failed: until when not to try again, and what went wrong.
    refuses: Option<(Instant, RedisError)>,
}

impl Writer {
    pub(super) fn new(dialer: Dialer, inbox: mpsc::UnboundedReceiver<Order>, traffic: Arc<Traffic>) -> Self {
        let (under_way, pause) = (FuturesUnordered::new(), Pause::default());
        Self { dialer, inbox, traffic, under_way, pause, refuses: None }
    }

    /// Writes what is queued until the wire is closed.
    pub(super) async fn run(mut self) {
        let mut batch = VecDeque::new();
        loop {
            tokio::select! {
                order = self.inbox.recv(), if !self.is_awaiting_replicas() => match order {
                    Some(Order::Send { command, before, answer }) => {
                        self.traffic.queued.fetch_sub(1, Ordering::AcqRel);
                        enqueue(&mut batch, before, command, answer);
                    }
                    Some(Order::Close) | None => break,
                },
                Some(()) = self.under_way.next(), if !self.under_way.is_empty() => continue,
            }
            if self.traffic.open.load(Ordering::Acquire) > batch.len() {
                tokio::select! {
                    biased;
                    () = self.traffic.enough.notified() => {}
                    () = tokio::task::yield_now() => {}
                }
            }
            let closes = self.gather(&mut batch);
            self.send(&mut batch).await;
            if closes {
                break;
            }
        }
        self.inbox.close();
        *self.traffic.shared() = None;
        while self.under_way.next().await.is_some() {}
        while let Some(order) = self.inbox.recv().await {
            if let Order::Send { answer, .. } = order {
                deliver(answer, Err(Fault::Closed));
            }
        }
    }

    /// What is sent now would stand behind a `WAIT`, and have one of its own to wait for: so it goes with the next write,
    /// with whatever comes until then.
    fn is_awaiting_replicas(&self) -> bool {
        self.traffic.confirmation.is_some() && !self.under_way.is_empty()
    }

    /// Takes what is queued. Says whether the wire is to be closed after it.
    fn gather(&mut self, batch: &mut VecDeque<(Cmd, Answer)>) -> bool {
        while batch.len() < BATCH {
            match self.inbox.try_recv() {
                Ok(Order::Send { command, before, answer }) => {
                    self.traffic.queued.fetch_sub(1, Ordering::AcqRel);
                    enqueue(batch, before, command, answer);
                }
                Ok(Order::Close) => return true,
                Err(_) => return false,
            }
        }
        false
    }

    async fn send(&mut self, batch: &mut VecDeque<(Cmd, Answer)>) {
        let made = self.connected().await;
        let mut pipeline = Pipeline::with_capacity(batch.len());
        let mut answers = Vec::with_capacity(batch.len());
        for (command, answer) in batch.drain(..) {
            pipeline.add_command(command);
            answers.push(answer);
        }
        let traffic = self.traffic.clone();
        let line = match made {
            Ok(line) => line,
            Err(error) => return settle(&traffic, answers, Err(Fault::NotSent(error))),
        };
        self.under_way.push(Box::pin(async move {
            let answered = traffic.exchange(line, pipeline, answers.len()).await;
            settle(&traffic, answers, answered);
        }));
        // Out it goes, before anything else that is queued is looked at.
        let _ = self.under_way.next().now_or_never();
    }

    /// The connection, made anew if it is lost. Answers that come meanwhile are delivered meanwhile.
    async fn connected(&mut self) -> Result<Line, RedisError> {
        if let Some(line) = self.traffic.line() {
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
                *self.traffic.shared() = Some(line.clone());
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

fn enqueue(batch: &mut VecDeque<(Cmd, Answer)>, before: Option<Cmd>, command: Cmd, answer: Answer) {
    batch.extend(before.map(|before| (before, None)));
    batch.push_back((command, answer));
}

/// Hands out the answers to what was queued.
fn settle(traffic: &Traffic, answers: Vec<Answer>, answered: Result<Vec<Result<Value, Fault>>, Fault>) {
    traffic.open.fetch_sub(answers.len(), Ordering::AcqRel);
    match answered {
        Ok(values) => answers.into_iter().zip(values).for_each(|(answer, value)| deliver(answer, value)),
        Err(fault) => answers.into_iter().for_each(|answer| deliver(answer, Err(fault.clone()))),
    }
}

fn deliver(answer: Answer, result: Result<Value, Fault>) {
    if let Some(answer) = answer {
        // Whoever asked may be gone.
        drop(answer.send(result));
    }
}
