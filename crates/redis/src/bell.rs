//! What wakes claims: one subscriber connection per server for a whole client.
//!
//! Channels are subscribed while somebody waits on them, however many, and a little longer: locks change hands quickly,
//! and the next waiter of this process finds the channel open. A message rings every claim that listens on its channel;
//! a wake-up is a hint, the claim looks for itself. Messages are not kept for those who were away: so when the
//! connection was lost, everybody is rung as soon as there is a new one.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt;
use redis::{
    Msg, RedisError,
    aio::{PubSubSink, PubSubStream},
};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::Instant,
};

use crate::{
    error::Fault,
    wire::{Dialer, Pause},
};

/// How long a channel stays subscribed after the last one left.
const LINGER: Duration = Duration::from_millis(200);

/// One server's line for messages.
#[derive(Clone)]
pub(crate) struct Ear {
    orders: mpsc::UnboundedSender<Order>,
    next: Arc<AtomicU64>,
}

/// One claim's share of it, from joining to drop.
#[derive(Debug)]
pub(crate) struct Bell {
    ear: Ear,
    token: u64,
    rings: Arc<Notify>,
    /// Until it is known that the channels are subscribed.
    arming: Option<oneshot::Receiver<Result<(), Fault>>>,
}

enum Order {
    Join { token: u64, channels: Vec<String>, rings: Arc<Notify>, armed: oneshot::Sender<Result<(), Fault>> },
    Leave { token: u64 },
    Close,
}

impl Ear {
    /// Starts the listening task on the current runtime. The connection is made when somebody waits.
    pub(crate) fn start(dialer: Dialer) -> Self {
        let (orders, inbox) = mpsc::unbounded_channel();
        let listener = Listener {
            dialer,
            inbox,
            link: None,
            joined: HashMap::new(),
            channels: HashMap::new(),
            subscribed: HashSet::new(),
            empty: Vec::new(),
            arming: Vec::new(),
            pause: Pause::default(),
            not_before: None,
        };
        tokio::runtime::Handle::current().spawn(listener.run());
        Self { orders, next: Arc::default() }
    }

    /// Begins to listen on these channels. No I/O here; [`Bell::rung`] first waits until they are subscribed.
    pub(crate) fn join(&self, channels: Vec<String>) -> Bell {
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        let rings = Arc::new(Notify::new());
        let (armed, arming) = oneshot::channel();
        drop(self.orders.send(Order::Join { token, channels, rings: rings.clone(), armed }));
        Bell { ear: self.clone(), token, rings, arming: Some(arming) }
    }

    pub(crate) fn close(&self) {
        drop(self.orders.send(Order::Close));
    }
}

impl Bell {
    /// Completes when the channels are subscribed, the first time, and then whenever it was rung since.
    /// Dropping it loses nothing.
    pub(crate) async fn rung(&mut self) -> Result<(), Fault> {
        if let Some(arming) = &mut self.arming {
            let armed = arming.await.unwrap_or(Err(Fault::Closed));
            self.arming = None;
            return armed;
        }
        self.rings.notified().await;
        Ok(())
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        drop(self.ear.orders.send(Order::Leave { token: self.token }));
    }
}

impl fmt::Debug for Ear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ear").field("closed", &self.orders.is_closed()).finish_non_exhaustive()
    }
}

struct Listener {
    dialer: Dialer,
    inbox: mpsc::UnboundedReceiver<Order>,
    link: Option<(PubSubSink, PubSubStream)>,
    /// What each bell listens on.
    joined: HashMap<u64, Vec<String>>,
    /// Who listens on a channel.
    channels: HashMap<String, HashMap<u64, Arc<Notify>>>,
    subscribed: HashSet<String>,
    /// Channels that nobody listens on any more, and when they are let go.
    empty: Vec<(Instant, String)>,
    arming: Vec<oneshot::Sender<Result<(), Fault>>>,
    pause: Pause,
    not_before: Option<Instant>,
}

enum Event {
    Order(Option<Order>),
    Message(Option<Msg>),
    Timer,
}

impl Listener {
    async fn run(mut self) {
        loop {
            match self.event().await {
                Event::Order(None | Some(Order::Close)) => return,
                Event::Order(Some(order)) => {
                    self.take(order);
                    while let Ok(order) = self.inbox.try_recv() {
                        if matches!(order, Order::Close) {
                            return;
                        }
                        self.take(order);
                    }
                }
                Event::Message(Some(message)) => self.ring(message.get_channel_name()),
                Event::Message(None) => self.lose(),
                Event::Timer => {}
            }
            self.settle().await;
        }
    }

    async fn event(&mut self) -> Event {
        let timer = self.empty.first().map(|(when, _)| *when).into_iter().chain(self.not_before).min();
        let Self { inbox, link, .. } = self;
        tokio::select! {
            order = inbox.recv() => Event::Order(order),
            message = next_message(link) => Event::Message(message),
            () = until(timer) => Event::Timer,
        }
    }

    fn take(&mut self, order: Order) {
        match order {
            Order::Join { token, channels, rings, armed } => {
                for channel in &channels {
                    self.channels.entry(channel.clone()).or_default().insert(token, rings.clone());
                }
                self.joined.insert(token, channels);
                self.arming.push(armed);
            }
            Order::Leave { token } => {
                for channel in self.joined.remove(&token).unwrap_or_default() {
                    if let Some(listeners) = self.channels.get_mut(&channel) {
                        listeners.remove(&token);
                        if listeners.is_empty() {
                            self.channels.remove(&channel);
                            self.empty.push((Instant::now() + LINGER, channel));
                        }
                    }
                }
            }
            Order::Close => {}
        }
    }

    fn ring(&self, channel: &str) {
        for rings in self.channels.get(channel).into_iter().flat_map(HashMap::values) {
            rings.notify_one();
        }
    }

    fn lose(&mut self) {
        self.link = None;
        self.subscribed.clear();
        self.empty.clear();
    }

    /// Subscribes what is wanted and lets go of what is not, in as few requests as possible.
    async fn settle(&mut self) {
        if let Err(error) = self.try_settle().await {
            tracing::debug!(%error, "no messages from Redis");
            self.lose();
            self.not_before = Some(Instant::now() + self.pause.next());
            for armed in self.arming.drain(..) {
                drop(armed.send(Err(Fault::NotSent(error.clone()))));
            }
        }
    }

    async fn try_settle(&mut self) -> Result<(), RedisError> {
        let now = Instant::now();
        if self.not_before.is_some_and(|then| now < then) {
            return Ok(());
        }
        self.not_before = None;
        let due = self.empty.iter().take_while(|(when, _)| *when <= now).count();
        let unwanted: Vec<String> = self
            .empty
            .drain(..due)
            .map(|(_, channel)| channel)
            .filter(|channel| !self.channels.contains_key(channel) && self.subscribed.remove(channel))
            .collect();
        // Messages come often and joins seldom: only those can bring a channel that is not subscribed.
        if !self.arming.is_empty() || self.link.is_none() {
            let new = self.channels.keys().filter(|channel| !self.subscribed.contains(*channel));
            let wanted: Vec<String> = new.cloned().collect();
            if !wanted.is_empty() {
                self.subscribe(wanted).await?;
            }
        }
        for armed in self.arming.drain(..) {
            drop(armed.send(Ok(())));
        }
        if let Some((sink, _)) = &mut self.link
            && !unwanted.is_empty()
        {
            in_time(&self.dialer, sink.unsubscribe(unwanted)).await?;
        }
        Ok(())
    }

    async fn subscribe(&mut self, wanted: Vec<String>) -> Result<(), RedisError> {
        let again = self.link.is_none() && self.joined.len() > self.arming.len();
        if self.link.is_none() {
            self.link = Some(self.dialer.messages().await?.split());
        }
        let Some((sink, _)) = &mut self.link else { return Ok(()) };
        in_time(&self.dialer, sink.subscribe(&wanted)).await?;
        self.pause.reset();
        self.subscribed.extend(wanted);
        if again {
            // What was told while we were away is lost: everybody looks for themselves.
            for rings in self.channels.values().flat_map(HashMap::values) {
                rings.notify_one();
            }
        }
        Ok(())
    }
}

async fn in_time(
    dialer: &Dialer,
    asked: impl Future<Output = Result<(), RedisError>>,
) -> Result<(), RedisError> {
    let answered = tokio::time::timeout(dialer.patience(), asked).await;
    answered.unwrap_or_else(|_| Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()))
}

async fn next_message(link: &mut Option<(PubSubSink, PubSubStream)>) -> Option<Msg> {
    match link {
        Some((_, stream)) => stream.next().await,
        None => std::future::pending().await,
    }
}

async fn until(timer: Option<Instant>) {
    match timer {
        Some(then) => tokio::time::sleep_until(then).await,
        None => std::future::pending().await,
    }
}
