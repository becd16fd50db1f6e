//! How a name finds its server: a topology is one small file here.
//!
//! Everything above says which name a request is about and how much it matters; which servers there are, which is the
//! primary and where a slot has moved is nobody else's business. A request that a server refuses because of where it
//! came is sent again to where it belongs: a refusal proves that nothing was done. Nothing else is ever sent twice.

mod cluster;
mod primary;
mod replicas;
mod sentinel;
mod single;
mod slots;

use std::{fmt::Debug, sync::Arc, time::Instant};

use async_trait::async_trait;
use leasehold_core::{Error, Operation, Result, backend::Guarantee};
use redis::{Cmd, ServerError, Value};
use tokio::sync::{Notify, watch};

use self::{cluster::Cluster, primary::Primary, replicas::Replicas, sentinel::Sentinels, single::Single};
use crate::{
    bell::{Bell, Channel, Ear},
    config::{Address, RedisConfig, Servers},
    error::Fault,
    names,
    scripts::Script,
    wire::{Confirmation, Dialer, Whereabouts, Wire},
};

/// How often a request is sent to yet another server.
const DETOURS: usize = 8;

/// The servers of one store.
#[async_trait]
pub(crate) trait Topology: Debug + Send + Sync + 'static {
    /// The server that decides about this name now.
    fn node(&self, name: &str) -> Arc<Node>;

    /// Names of one slot may share a request. One server is one slot.
    fn slot(&self, name: &str) -> u16;

    /// All servers that decide about names, for listings.
    fn nodes(&self) -> Vec<Arc<Node>>;

    /// The command by which wake-ups are told.
    fn verb(&self) -> &'static str;

    /// What locks on these servers are worth.
    fn guarantee(&self) -> Guarantee;

    /// Whether the keys of this name would end up in different slots.
    fn splits(&self, _name: &str) -> bool {
        false
    }

    /// Whether wake-ups may be told by slot.
    fn is_sharded(&self) -> bool {
        false
    }

    /// Where to send what `tried` refused, or `None` if the refusal stands. May take a moment: a failover does.
    async fn detour(&self, name: &str, tried: &Arc<Node>, refusal: &ServerError) -> Option<Detour>;

    /// Finds out again where names live, if that can change.
    async fn look_around(&self) {}

    fn close(&self) {
        for node in self.nodes() {
            node.close();
        }
    }
}

/// Where a refused request belongs.
#[derive(Debug)]
pub(crate) struct Detour {
    pub(crate) node: Arc<Node>,
    /// That server is only being given the slot.
    pub(crate) asking: bool,
}

/// How much a request matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// It makes or keeps a promise to a holder: replicas confirm it, if the store asks for that.
    Promise,
    /// Everything else.
    Plain,
}

/// Connects to the servers of a configuration.
pub(crate) async fn open(config: RedisConfig) -> Result<Box<dyn Topology>> {
    let config = Arc::new(config);
    Ok(match &config.servers {
        Servers::One(address) => Box::new(Single::open(&config, address).await?),
        Servers::Sentinels { sentinels, primary } => {
            let sentinels = Arc::new(Sentinels::new(&config, sentinels, primary));
            let topology = Primary::open(&config, sentinels.clone()).await?;
            sentinels.watch(&topology.node(""));
            Box::new(topology)
        }
        Servers::Replicas(addresses) => {
            Box::new(Primary::open(&config, Arc::new(Replicas::new(&config, addresses))).await?)
        }
        Servers::Cluster(seeds) => Box::new(Cluster::open(&config, seeds).await?),
    })
}

/// One server that may be down for now.
pub(crate) fn start(config: RedisConfig) -> Result<Box<dyn Topology>> {
    let config = Arc::new(config);
    match &config.servers {
        Servers::One(address) => Ok(Box::new(Single::start(&config, address))),
        _ => Err(Error::config(Operation::Connect, "a member of a quorum is one server")),
    }
}

impl dyn Topology {
    /// Runs a script on whichever server decides about this name.
    pub(crate) async fn run(
        &self,
        name: &str,
        weight: Weight,
        script: &Script,
        fill: impl Fn(&mut Cmd) + Sync,
    ) -> Result<Value, Fault> {
        if self.splits(name) {
            return Err(Fault::Split);
        }
        let node = self.node(name);
        let answer = node.wire(weight).run(script, &fill).await;
        let Some(refusal) = answer.as_ref().err().and_then(Fault::refusal) else { return answer };
        // With its text: the other server may not have it.
        let command = script.by_text(&fill);
        Box::pin(self.elsewhere(name, node, weight, refusal, command)).await.unwrap_or(answer)
    }

    /// As [`run`](Self::run), but a refusal stands.
    pub(crate) async fn run_once(
        &self,
        name: &str,
        weight: Weight,
        script: &Script,
        fill: impl Fn(&mut Cmd) + Sync,
    ) -> Result<Value, Fault> {
        self.node(name).wire(weight).run(script, &fill).await
    }

    /// Sends a command to whichever server decides about this name.
    pub(crate) async fn call(&self, name: &str, command: Cmd) -> Result<Value, Fault> {
        if self.splits(name) {
            return Err(Fault::Split);
        }
        let node = self.node(name);
        let answer = node.wire.call(command.clone()).await;
        let Some(refusal) = answer.as_ref().err().and_then(Fault::refusal) else { return answer };
        Box::pin(self.elsewhere(name, node, Weight::Plain, refusal, command)).await.unwrap_or(answer)
    }

    /// Listens for what is told about this name on these channels.
    pub(crate) fn listen(&self, name: &str, channels: Vec<String>) -> Bell {
        let by_slot = |channel: &str| self.is_sharded() && names::slot(channel) == names::slot(name);
        let channels =
            channels.into_iter().map(|channel| Channel { by_slot: by_slot(&channel), name: channel });
        self.node(name).ear.join(channels.collect())
    }

    /// Listens to what is said on a channel that belongs to no name: it is told plainly, on whichever server.
    pub(crate) fn hear(&self, channel: String) -> Bell {
        self.node(&channel).ear.hear(Channel { name: channel, by_slot: false })
    }

    /// How something is told on a channel that may be in another slot than its name: scripts reach no other slot.
    pub(crate) fn verb_on(&self, name: &str, channel: &str) -> &'static str {
        let is_elsewhere = self.is_sharded() && names::slot(channel) != names::slot(name);
        if is_elsewhere { "PUBLISH" } else { self.verb() }
    }

    /// Sends a refused command to where it belongs, if that can be found out.
    async fn elsewhere(
        &self,
        name: &str,
        mut tried: Arc<Node>,
        weight: Weight,
        refusal: &ServerError,
        command: Cmd,
    ) -> Option<Result<Value, Fault>> {
        let mut refusal = refusal.clone();
        let mut last = None;
        let began = Instant::now();
        for _ in 0..DETOURS {
            if began.elapsed() > tried.wire.patience() {
                return last;
            }
            let Some(detour) = self.detour(name, &tried, &refusal).await else { return last };
            let wire = detour.node.wire(weight);
            let answer = if detour.asking {
                wire.call_asking(command.clone()).await
            } else {
                wire.call(command.clone()).await
            };
            match answer.as_ref().err().and_then(Fault::refusal) {
                Some(again) => refusal = again.clone(),
                None => return Some(answer),
            }
            tried = detour.node;
            last = Some(answer);
        }
        last
    }
}

/// One server: a line for requests, perhaps one more for promises, and an ear for messages.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) wire: Wire,
    confirmed: Option<Wire>,
    pub(crate) ear: Ear,
    is_closed: watch::Sender<bool>,
}

impl Node {
    /// Nothing is sent before something is asked for.
    pub(crate) fn start(config: &Arc<RedisConfig>, to: Whereabouts) -> Self {
        Self::start_telling(config, to, None)
    }

    /// Tells when a connection is lost or cannot be made.
    fn start_telling(config: &Arc<RedisConfig>, to: Whereabouts, trouble: Option<Arc<Notify>>) -> Self {
        let dialer = Dialer::new(config.clone(), to).telling(trouble);
        let asked = Confirmation { replicas: config.wait_replicas, timeout: config.replica_timeout };
        let confirmed = (asked.replicas > 0).then(|| Wire::start(dialer.clone(), Some(asked)));
        let wire = Wire::start(dialer.clone(), None);
        Self { wire, confirmed, ear: Ear::start(dialer), is_closed: watch::Sender::new(false) }
    }

    fn wire(&self, weight: Weight) -> &Wire {
        match (weight, &self.confirmed) {
            (Weight::Promise, Some(confirmed)) => confirmed,
            _ => &self.wire,
        }
    }

    /// Whatever is connected to another address, or to any if none is given, connects anew.
    pub(crate) fn leave_for(&self, elsewhere: Option<&Address>) {
        self.wire.leave_for(elsewhere);
        if let Some(confirmed) = &self.confirmed {
            confirmed.leave_for(elsewhere);
        }
        self.ear.leave_for(elsewhere.cloned());
    }

    /// Completes when it is closed, or nobody has it any more.
    fn over(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut told = self.is_closed.subscribe();
        async move { drop(told.wait_for(|is_closed| *is_closed).await) }
    }

    pub(crate) fn close(&self) {
        self.is_closed.send_replace(true);
        self.wire.close();
        if let Some(confirmed) = &self.confirmed {
            confirmed.close();
        }
        self.ear.close();
    }
}
