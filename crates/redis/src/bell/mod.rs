//! What wakes claims: one subscriber connection per server for a whole client.
//!
//! Channels are subscribed while somebody waits on them, however many, and a little longer: locks change hands quickly,
//! and the next waiter of this process finds the channel open. A message rings every claim that listens on its channel;
//! a wake-up is a hint, the claim looks for itself. Messages are not kept for those who were away: so when the
//! connection was lost, everybody is rung as soon as there is a new one.
//!
//! In a cluster a channel may belong to a slot. Such a channel is subscribed both ways, by slot and plainly, because
//! older clients only tell plainly. When its slot moves away the server says so, and whoever listens is told to look for
//! another place: what is told there would not be heard here.

mod linger;
mod link;
mod rings;

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use redis::RedisError;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

pub(crate) use self::rings::{Bell, MISSED, Ring};
use self::{
    linger::Lingering,
    link::{Heard, Link, Say},
    rings::Rings,
};
use crate::{
    config::Address,
    error::Fault,
    wire::{Dialer, Pause},
};

/// One server's line for messages.
#[derive(Clone)]
pub(crate) struct Ear {
    orders: mpsc::UnboundedSender<Order>,
    next: Arc<AtomicU64>,
}

/// Where something is told.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub(crate) name: String,
    /// It belongs to a slot of this server, and may be told by slot.
    pub(crate) by_slot: bool,
}

enum Order {
    Join { token: u64, channels: Vec<Channel>, rings: Arc<Rings>, armed: oneshot::Sender<Result<(), Fault>> },
    Leave { token: u64 },
    Move { to: Option<Address> },
    Scatter,
    Close,
}

impl Ear {
    /// Starts the listening task on the current runtime. The connection is made when somebody waits.
    pub(crate) fn start(dialer: Dialer) -> Self {
        let (orders, inbox) = mpsc::unbounded_channel();
        tokio::runtime::Handle::current().spawn(Listener::new(dialer, inbox).run());
        Self { orders, next: Arc::default() }
    }

    /// Begins to listen on these channels. No I/O here; [`Bell::rung`] first waits until they are subscribed.
    pub(crate) fn join(&self, channels: Vec<Channel>) -> Bell {
        self.enter(channels, Rings::default())
    }

    /// The same on one channel, for one who wants to know what is said there, and can do without: where we may not listen,
    /// it is told so, and the others go on.
    pub(crate) fn hear(&self, channel: Channel) -> Bell {
        self.enter(vec![channel], Rings::hearing())
    }

    fn enter(&self, channels: Vec<Channel>, rings: Rings) -> Bell {
        let (token, rings) = (self.next.fetch_add(1, Ordering::Relaxed), Arc::new(rings));
        let (armed, arming) = oneshot::channel();
        drop(self.orders.send(Order::Join { token, channels, rings: rings.clone(), armed }));
        Bell::new(self.clone(), token, rings, arming)
    }

    fn leave(&self, token: u64) {
        drop(self.orders.send(Order::Leave { token }));
    }

    /// Listens elsewhere from now on, unless it does so already.
    pub(crate) fn leave_for(&self, elsewhere: Option<Address>) {
        drop(self.orders.send(Order::Move { to: elsewhere }));
    }

    /// Tells everybody to look for another place: this server may not decide about their names any more.
    pub(crate) fn scatter(&self) {
        drop(self.orders.send(Order::Scatter));
    }

    pub(crate) fn close(&self) {
        drop(self.orders.send(Order::Close));
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
    link: Option<Link>,
    /// What each bell listens on.
    joined: HashMap<u64, Vec<String>>,
    /// Who listens on a channel.
    channels: HashMap<String, Listeners>,
    /// What is subscribed, by either way.
    plain: HashSet<String>,
    by_slot: HashSet<String>,
    /// What we left ourselves, until the server says so.
    leaving: HashSet<String>,
    /// Channels that nobody listens on any more, and when they are let go.
    empty: Lingering,
    arming: Vec<oneshot::Sender<Result<(), Fault>>>,
    /// There was a time without a connection: what was told then, nobody heard.
    missed: bool,
    pause: Pause,
    not_before: Option<Instant>,
}

#[derive(Default)]
struct Listeners {
    by_slot: bool,
    bells: HashMap<u64, Arc<Rings>>,
}

enum Event {
    Order(Option<Order>),
    Heard(Heard),
    Timer,
}

impl Listener {
    /// One who hears nobody yet.
    fn new(dialer: Dialer, inbox: mpsc::UnboundedReceiver<Order>) -> Self {
        Self {
            dialer,
            inbox,
            link: None,
            joined: HashMap::new(),
            channels: HashMap::new(),
            plain: HashSet::new(),
            by_slot: HashSet::new(),
            leaving: HashSet::new(),
            empty: Lingering::default(),
            arming: Vec::new(),
            missed: false,
            pause: Pause::default(),
            not_before: None,
        }
    }

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
                Event::Heard(Heard::Message(channel, word)) => self.ring(&channel, &word),
                Event::Heard(Heard::Left(channel)) => self.left(&channel),
                Event::Heard(Heard::End) => self.lose(),
                Event::Timer => {}
            }
            self.settle().await;
        }
    }

    async fn event(&mut self) -> Event {
        // Until the server is tried again nobody is let go either.
        let timer = self.not_before.or_else(|| self.empty.next());
        let Self { inbox, link, .. } = self;
        tokio::select! {
            order = inbox.recv() => Event::Order(order),
            heard = next(link) => Event::Heard(heard),
            () = until(timer) => Event::Timer,
        }
    }

    fn take(&mut self, order: Order) {
        match order {
            Order::Join { token, channels, rings, armed } => {
                for channel in &channels {
                    let listeners = self.channels.entry(channel.name.clone()).or_default();
                    listeners.by_slot = channel.by_slot;
                    listeners.bells.insert(token, rings.clone());
                }
                self.joined.insert(token, channels.into_iter().map(|channel| channel.name).collect());
                self.arming.push(armed);
            }
            Order::Leave { token } => {
                for channel in self.joined.remove(&token).unwrap_or_default() {
                    if let Some(listeners) = self.channels.get_mut(&channel) {
                        listeners.bells.remove(&token);
                        if listeners.bells.is_empty() {
                            self.channels.remove(&channel);
                            self.empty.left(channel);
                        }
                    }
                }
            }
            Order::Move { to } => {
                if self.link.as_ref().is_some_and(|link| to.is_none_or(|to| to != link.to)) {
                    self.lose();
                }
            }
            Order::Scatter => {
                for channel in self.channels.keys().cloned().collect::<Vec<_>>() {
                    self.stray(&channel);
                }
            }
            Order::Close => {}
        }
    }

    fn ring(&self, channel: &str, word: &str) {
        for rings in self.channels.get(channel).into_iter().flat_map(|listeners| listeners.bells.values()) {
            rings.ring(word);
        }
    }

    /// A channel by slot is gone: we left it, or its slot did.
    fn left(&mut self, channel: &str) {
        if !self.leaving.remove(channel) && self.by_slot.remove(channel) {
            self.stray(channel);
        }
    }

    /// Sends everybody on a channel elsewhere. They leave by themselves, and may even come back.
    fn stray(&mut self, channel: &str) {
        let Some(listeners) = self.channels.remove(channel) else { return };
        for rings in listeners.bells.values() {
            rings.stray();
        }
        self.empty.left(channel.to_owned());
    }

    fn lose(&mut self) {
        self.missed |= self.link.take().is_some();
        self.plain.clear();
        self.by_slot.clear();
        self.leaving.clear();
        self.empty.clear();
    }

    /// Subscribes what is wanted and lets go of what is not, in as few requests as possible.
    async fn settle(&mut self) {
        if let Err(error) = self.try_settle().await {
            tracing::debug!(%error, "no messages from Redis");
            self.lose();
            if error.code() == Some("NOPERM") {
                self.do_without();
            }
            self.not_before = Some(Instant::now() + self.pause.next());
            for armed in self.arming.drain(..) {
                drop(armed.send(Err(Fault::NotSent(error.clone()))));
            }
        }
    }

    /// Sends those elsewhere who can do without what they listen for: it may be their channel that we may not listen on.
    fn do_without(&mut self) {
        let can = |listeners: &Listeners| listeners.bells.values().all(|rings| rings.can_do_without());
        let channels = self.channels.iter().filter(|(_, listeners)| can(listeners));
        for channel in channels.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.stray(&channel);
        }
    }

    async fn try_settle(&mut self) -> Result<(), RedisError> {
        let now = Instant::now();
        if self.not_before.is_some_and(|then| now < then) {
            return Ok(());
        }
        self.not_before = None;
        let mut unwanted = self.empty.over(now);
        // Messages come often and joins seldom: only those can bring a channel that is not subscribed.
        if !self.arming.is_empty() || self.link.is_none() {
            self.subscribe().await?;
        }
        for armed in self.arming.drain(..) {
            drop(armed.send(Ok(())));
        }
        unwanted.retain(|channel| !self.channels.contains_key(channel));
        if self.link.is_some() && !unwanted.is_empty() {
            self.unsubscribe(unwanted).await?;
        }
        Ok(())
    }

    async fn subscribe(&mut self) -> Result<(), RedisError> {
        let mut wanted = Vec::new();
        for (name, listeners) in &self.channels {
            if !self.plain.contains(name) {
                wanted.push((Say::Subscribe, name.clone()));
            }
            if listeners.by_slot && !self.by_slot.contains(name) {
                wanted.push((Say::SubscribeBySlot, name.clone()));
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        if self.link.is_none() {
            self.link = Some(Link::open(&self.dialer).await?);
        }
        let Some(link) = &mut self.link else { return Ok(()) };
        let refused = link.say(&wanted, self.dialer.patience()).await?;
        self.pause.reset();
        for (say, name) in wanted {
            if say == Say::Subscribe {
                self.plain.insert(name);
            } else if !refused.contains(&name) {
                self.by_slot.insert(name);
            }
        }
        for name in refused {
            self.stray(&name);
        }
        if std::mem::take(&mut self.missed) {
            // Everybody looks for themselves, also those who have just come: that costs one look.
            for rings in self.channels.values().flat_map(|listeners| listeners.bells.values()) {
                rings.ring(MISSED);
            }
        }
        Ok(())
    }

    async fn unsubscribe(&mut self, unwanted: Vec<String>) -> Result<(), RedisError> {
        let mut said = Vec::new();
        for channel in unwanted {
            if self.by_slot.remove(&channel) {
                self.leaving.insert(channel.clone());
                said.push((Say::UnsubscribeBySlot, channel.clone()));
            }
            if self.plain.remove(&channel) {
                said.push((Say::Unsubscribe, channel));
            }
        }
        match &mut self.link {
            Some(link) if !said.is_empty() => link.say(&said, self.dialer.patience()).await.map(drop),
            _ => Ok(()),
        }
    }
}

async fn until(timer: Option<Instant>) {
    match timer {
        Some(then) => tokio::time::sleep_until(then).await,
        None => std::future::pending().await,
    }
}

async fn next(link: &mut Option<Link>) -> Heard {
    match link {
        Some(link) => link.next().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::{linger::LINGER, *};
    use crate::{config::RedisConfig, wire::Whereabouts};

    /// A listener whose server is nowhere.
    fn stranded(inbox: mpsc::UnboundedReceiver<Order>) -> Listener {
        let (config, nowhere) = (RedisConfig::unix("/nowhere"), Address::Unix("/nowhere".into()));
        Listener::new(Dialer::new(Arc::new(config), Whereabouts::Fixed(nowhere)), inbox)
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_looked_at_again_before_the_server_is_tried_again() {
        let (_orders, inbox) = mpsc::unbounded_channel();
        let mut listener = stranded(inbox);
        // A server that has been away for a while is tried seldom.
        for token in 0..10 {
            let channels = vec![Channel { name: "a".to_owned(), by_slot: false }];
            let (armed, _) = oneshot::channel();
            listener.take(Order::Join { token, channels, rings: Arc::default(), armed });
            listener.not_before = None;
            listener.settle().await;
            listener.take(Order::Leave { token });
        }
        let then = listener.not_before.expect("there is no server");
        assert!(!listener.empty.is_empty() && Instant::now() + LINGER < then);
        assert!(matches!(listener.event().await, Event::Timer));
        assert!(Instant::now() >= then, "too soon by {:?}", then - Instant::now());
    }
}
