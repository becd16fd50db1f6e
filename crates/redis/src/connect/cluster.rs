//! A cluster: names are spread over primaries by slot, and slots move.
//!
//! Which server decides about which slot is asked of any of them: at the start, every now and then, and whenever
//! something does not fit: a connection is lost, a server says that the slot has moved, that it is a replica, or that
//! the cluster is down. One asks, and whoever else wants to know waits for that answer.
//!
//! A server that gives a slot away answers each request in one of three ways, and all of them mean that nothing was
//! done: `MOVED`, the slot is elsewhere for good; `ASK`, this key is elsewhere already; `TRYAGAIN`, some of the keys
//! are. What is told without waiting for an answer (introductions) is not told again: it is said anew before it expires.

use std::{
    cell::Cell,
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt, stream::FuturesUnordered};
use leasehold_core::{Error, Operation, Result, backend::Guarantee};
use redis::{RedisError, ServerError, Value};
use tokio::{sync::Notify, time::Instant};

use super::{
    Detour, Node, Topology,
    primary::replicated,
    slots::{self, Map, Member, Told},
};
use crate::{
    config::{Address, Publish, RedisConfig},
    error::Fault,
    names,
    wire::{Dialer, Whereabouts, chance},
};

/// How often the map is asked for although nothing happened, at least; at most twice as seldom.
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// The least time between two times of asking.
const REST: Duration = Duration::from_millis(50);

/// How long to wait for one server's answer before another is asked as well.
const HEDGE: Duration = Duration::from_millis(300);

/// Names live on the server that has their slot.
#[derive(Debug)]
pub(crate) struct Cluster {
    atlas: Arc<Atlas>,
    verb: &'static str,
    is_sharded: bool,
}

/// The map and what keeps it right.
#[derive(Debug)]
struct Atlas {
    config: Arc<RedisConfig>,
    seeds: Vec<Address>,
    map: RwLock<Arc<Map>>,
    /// Every node there is, also those that are only being given their first slots.
    nodes: Mutex<HashMap<String, Member>>,
    /// When the map was last asked for. Whoever asks holds this.
    asked: tokio::sync::Mutex<Option<Instant>>,
    /// Who is asked first next time.
    turn: AtomicUsize,
    /// Something happened that may have changed the map.
    trouble: Arc<Notify>,
    is_closed: AtomicBool,
}

impl Cluster {
    /// Connects, and finds out at once whether that is allowed.
    pub(crate) async fn open(config: &Arc<RedisConfig>, seeds: &[Address]) -> Result<Self> {
        if config.db != 0 {
            let message = "a cluster has one database only; leave the number of the database out";
            return Err(Error::config(Operation::Connect, message));
        }
        let (told, _) =
            ask(config, seeds.to_vec()).await.map_err(|fault| fault.into_error(Operation::Connect))?;
        let trouble = Arc::new(Notify::new());
        let mut nodes = HashMap::new();
        let map = Map::new(told, |address| node_at(&mut nodes, config, &trouble, address));
        let atlas = Arc::new(Atlas {
            config: config.clone(),
            seeds: seeds.to_vec(),
            map: RwLock::new(Arc::new(map)),
            nodes: Mutex::new(nodes),
            asked: tokio::sync::Mutex::new(Some(Instant::now())),
            turn: AtomicUsize::new(0),
            trouble,
            is_closed: AtomicBool::new(false),
        });
        let is_sharded = config.publish != Publish::Plain && atlas.offers_shards().await?;
        let verb = match config.publish {
            Publish::Both if is_sharded => "BOTH",
            _ if is_sharded => "SPUBLISH",
            _ => "PUBLISH",
        };
        tokio::runtime::Handle::current().spawn(watch(Arc::downgrade(&atlas), atlas.trouble.clone()));
        Ok(Self { atlas, verb, is_sharded })
    }
}

#[async_trait]
impl Topology for Cluster {
    fn node(&self, name: &str) -> Arc<Node> {
        self.atlas.node(names::slot(name))
    }

    fn slot(&self, name: &str) -> u16 {
        names::slot(name)
    }

    fn splits(&self, name: &str) -> bool {
        !names::is_in_one_slot(name)
    }

    fn is_sharded(&self) -> bool {
        self.is_sharded
    }

    fn nodes(&self) -> Vec<Arc<Node>> {
        self.atlas.map().members().iter().map(|member| member.node.clone()).collect()
    }

    fn verb(&self) -> &'static str {
        self.verb
    }

    fn guarantee(&self) -> Guarantee {
        replicated(self.atlas.config.wait_replicas > 0)
    }

    async fn detour(&self, name: &str, tried: &Arc<Node>, refusal: &ServerError) -> Option<Detour> {
        let atlas = &self.atlas;
        let code = if Fault::is_half_moved(refusal) { "TRYAGAIN" } else { refusal.code() };
        match code {
            "MOVED" | "ASK" => {
                let asking = code == "ASK";
                let node = atlas.follow(tried, refusal.details()?, asking)?;
                Some(Detour { node, asking })
            }
            "TRYAGAIN" => {
                // From the start: what is where changes meanwhile.
                tokio::time::sleep(pause()).await;
                Some(Detour { node: self.node(name), asking: false })
            }
            "CLUSTERDOWN" | "READONLY" => {
                tokio::time::sleep(pause()).await;
                atlas.refresh().await;
                Some(Detour { node: self.node(name), asking: false })
            }
            _ => None,
        }
    }

    async fn look_around(&self) {
        self.atlas.refresh().await;
    }

    fn close(&self) {
        self.atlas.is_closed.store(true, Ordering::Release);
        self.atlas.trouble.notify_one();
        for member in self.atlas.nodes().values() {
            member.node.close();
        }
    }
}

impl Atlas {
    fn map(&self) -> Arc<Map> {
        self.map.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn nodes(&self) -> MutexGuard<'_, HashMap<String, Member>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever decides about a slot; of a slot that nobody has, anybody, who will say so.
    fn node(&self, slot: u16) -> Arc<Node> {
        let map = self.map();
        let member =
            map.owner(slot).unwrap_or_else(|| &map.members()[usize::from(slot) % map.members().len()]);
        member.node.clone()
    }

    /// The node that a refusal points to. One that has a slot for good is remembered at once.
    fn follow(&self, by: &Arc<Node>, details: &str, asking: bool) -> Option<Arc<Node>> {
        let mut nodes = self.nodes();
        let by = nodes.values().find(|member| Arc::ptr_eq(&member.node, by));
        let by = by.map_or_else(|| self.seeds.first().cloned(), |member| Some(member.address.clone()))?;
        let (slot, address) = slots::pointed(details, &by)?;
        let node = node_at(&mut nodes, &self.config, &self.trouble, &address);
        if !asking {
            let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
            let before = map.owner(slot).map(|owner| owner.node.clone());
            *map = Arc::new(map.with(slot, Member { address, node: node.clone() }));
            // Whoever listens at the old owner listens elsewhere from now on.
            if let Some(before) = before.filter(|before| !Arc::ptr_eq(before, &node)) {
                before.ear.scatter();
            }
            // More slots may have moved than this one.
            self.trouble.notify_one();
        }
        Some(node)
    }

    /// Asks for the map. If somebody is asking just now, waits for that answer. Keeps the old map if nobody answers.
    async fn refresh(&self) {
        let wanted = Instant::now();
        let mut asked = self.asked.lock().await;
        if asked.is_some_and(|at| at >= wanted) || self.is_closed.load(Ordering::Acquire) {
            return;
        }
        if let Some(rest) = asked.and_then(|at| (at + REST).checked_duration_since(Instant::now())) {
            tokio::time::sleep(rest).await;
        }
        *asked = Some(Instant::now());
        match ask(&self.config, self.who_knows()).await {
            Ok((told, by)) => {
                tracing::debug!(%by, ranges = told.ranges.len(), "the slots of the cluster, as told");
                self.adopt(told);
            }
            Err(fault) => tracing::debug!(?fault, "nobody tells the slots of the cluster"),
        }
    }

    /// Those who may know the map, another one first each time: one may be cut off from the others and not know.
    fn who_knows(&self) -> Vec<Address> {
        let map = self.map();
        let members = map.members().iter().map(|member| &member.address);
        let mut all: Vec<Address> = Vec::new();
        for address in members.chain(&map.others).chain(&self.seeds) {
            if !all.contains(address) {
                all.push(address.clone());
            }
        }
        let first = self.turn.fetch_add(1, Ordering::Relaxed) % all.len().max(1);
        all.rotate_left(first);
        all
    }

    /// Takes on a map. Whoever listens at a server that gave slots away listens elsewhere from now on; servers that are
    /// in no map any more are closed when the last request is done.
    fn adopt(&self, told: Told) {
        let mut nodes = self.nodes();
        let next = Map::new(told, |address| node_at(&mut nodes, &self.config, &self.trouble, address));
        let next = Arc::new(next);
        let before =
            std::mem::replace(&mut *self.map.write().unwrap_or_else(PoisonError::into_inner), next.clone());
        let is_member =
            |node: &Arc<Node>| next.members().iter().any(|member| Arc::ptr_eq(&member.node, node));
        nodes.retain(|_, member| is_member(&member.node) || Arc::strong_count(&member.node) > 1);
        drop(nodes);
        for member in before.members() {
            if !next.keeps(&before, &member.node) {
                member.node.ear.scatter();
            }
        }
    }

    /// Whether the servers tell by slot.
    async fn offers_shards(&self) -> Result<bool> {
        let mut command = redis::cmd("PUBSUB");
        command.arg("SHARDNUMSUB").arg("leasehold");
        let members: Vec<Member> = self.map().members().to_vec();
        let mut failed = Fault::Closed;
        for member in members {
            match member.node.wire.call(command.clone()).await {
                Ok(_) => return Ok(true),
                Err(Fault::Refused(_)) => return Ok(false),
                Err(fault) => failed = fault,
            }
        }
        Err(failed.into_error(Operation::Connect))
    }
}

/// Asks for the map whenever there is reason to, for as long as somebody has the store.
async fn watch(atlas: Weak<Atlas>, trouble: Arc<Notify>) {
    loop {
        let patience = ASK_AGAIN.mul_f64(1.0 + chance());
        // Late or told, it is time to ask.
        let _ = tokio::time::timeout(patience, trouble.notified()).await;
        let Some(atlas) = atlas.upgrade() else { return };
        if atlas.is_closed.load(Ordering::Acquire) {
            return;
        }
        atlas.refresh().await;
        drop(atlas);
        // A server that stays away is noticed again and again.
        tokio::time::sleep(pause() * 4).await;
    }
}

/// The node of an address: there is never more than one.
fn node_at(
    nodes: &mut HashMap<String, Member>,
    config: &Arc<RedisConfig>,
    trouble: &Arc<Notify>,
    address: &Address,
) -> Arc<Node> {
    let make = || Member {
        address: address.clone(),
        node: Arc::new(Node::start_telling(
            config,
            Whereabouts::Fixed(address.clone()),
            Some(trouble.clone()),
        )),
    };
    nodes.entry(address.to_string()).or_insert_with(make).node.clone()
}

/// Asks these servers for the map, each on a connection of its own, one after another, and the next one also when one
/// takes long. The first answer counts.
async fn ask(config: &Arc<RedisConfig>, mut servers: Vec<Address>) -> Result<(Told, Address), Fault> {
    servers.reverse();
    let mut under_way = FuturesUnordered::new();
    let failed = Cell::new(None);
    loop {
        match servers.pop() {
            Some(address) => under_way.push(ask_one(config, address)),
            None if under_way.is_empty() => return Err(failed.take().unwrap_or(Fault::Closed)),
            None => {}
        }
        let hedge = if servers.is_empty() { config.connect_timeout } else { HEDGE };
        match tokio::time::timeout(hedge, under_way.next()).await {
            Ok(Some(Ok(told))) => return Ok(told),
            Ok(Some(Err(error))) => failed.set(Some(Fault::NotSent(error))),
            Ok(None) | Err(_) => {}
        }
    }
}

async fn ask_one(config: &Arc<RedisConfig>, address: Address) -> Result<(Told, Address), RedisError> {
    let dialer = Dialer::new(config.clone(), Whereabouts::Fixed(address.clone()));
    let mut line = dialer.commands().await?;
    let mut command = redis::cmd("CLUSTER");
    command.arg("SLOTS");
    let asked =
        tokio::time::timeout(dialer.patience(), command.query_async::<Value>(&mut line.connection)).await;
    let answer = asked.unwrap_or_else(|_| Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()));
    let answer = answer.map_err(|error| {
        if error.to_string().contains("cluster support disabled") {
            return RedisError::from((
                redis::ErrorKind::InvalidClientConfig,
                "this server is no part of a cluster",
            ));
        }
        error
    })?;
    let told = slots::told(&answer, &address).ok_or_else(|| {
        let message = format!("{address} knows of no slots; is the cluster formed?");
        RedisError::from((redis::ErrorKind::Io, "no cluster", message))
    })?;
    Ok((told, address))
}

/// Before a refused request is tried again: short, and not the same for all.
fn pause() -> Duration {
    Duration::from_millis(25).mul_f64(1.0 + 3.0 * chance())
}
