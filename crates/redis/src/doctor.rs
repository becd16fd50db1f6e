//! The examination of a Redis: is it set up so that its locks are worth what they promise?
//!
//! Everything is asked for with ordinary commands, and a server that answers none of them (managed ones hide their
//! settings, users may lack the right) is not an error: what could not be seen is said in a note. What was seen is
//! judged in `server` by pure functions, so that servers nobody has at hand are judged right, too.
//!
//! Reading order: `facts` is what a server says about itself, `server` what that means for locks, `rights` what our
//! user may do and the least it must be allowed, `clock` how far its clock is from ours. It never changes a setting.

mod clock;
mod facts;
mod rights;
mod server;

use leasehold_core::{Operation, Result, backend::Finding};

use self::facts::Facts;
use crate::{
    config::{RedisConfig, Servers},
    connect::{Node, Topology},
    names::ClusterTrap,
};

/// What of the store's configuration an examination goes by.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// Whether the store knows that it talks to a cluster.
    pub(crate) is_cluster: bool,
    /// Whether the primary has to be found among several servers.
    pub(crate) is_found: bool,
    /// The user, as given.
    pub(crate) username: Option<String>,
    /// The number of the database.
    pub(crate) db: u32,
    /// How many replicas must confirm a grant.
    pub(crate) wait_replicas: u32,
}

impl Terms {
    pub(crate) fn of(config: &RedisConfig) -> Self {
        Self {
            is_cluster: matches!(config.servers, Servers::Cluster(_)),
            is_found: matches!(config.servers, Servers::Sentinels { .. } | Servers::Replicas(_)),
            username: config.username.clone(),
            db: config.db,
            wait_replicas: config.wait_replicas,
        }
    }
}

/// Examines all servers, and the rights to names that begin with `prefix`.
pub(crate) async fn examine(topology: &dyn Topology, terms: &Terms, prefix: &str) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for node in topology.nodes() {
        for finding in examine_node(&node, terms).await? {
            // What is so on all servers is said once.
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
    }
    findings.extend(rights::examine(topology, terms, prefix).await?);
    Ok(findings)
}

/// What tells a server from every other, if it says: one server under two addresses is still one.
pub(crate) async fn identity(node: &Node) -> Option<String> {
    Facts::run_id(node).await
}

async fn examine_node(node: &Node, terms: &Terms) -> Result<Vec<Finding>> {
    let facts = Facts::gather(node).await.map_err(|fault| fault.into_error(Operation::Inspect))?;
    let mut findings = server::judge(&facts, terms);
    findings.extend(clock::examine(node).await.map_err(|fault| fault.into_error(Operation::Inspect))?);
    findings.extend(facts.unseen());
    Ok(findings)
}

/// What there is to say about a name before it is used.
pub(crate) fn examine_name(terms: &Terms, name: &str) -> Vec<Finding> {
    const TOPIC: &str = "cluster-name";
    let Some(trap) = ClusterTrap::of(name) else {
        return vec![Finding::good(
            TOPIC,
            format!("everything about {name:?} would be in one slot of a cluster"),
        )];
    };
    let what = format!("the braces of {name:?} tear it apart in a cluster: {trap}");
    let finding = if terms.is_cluster {
        Finding::danger(TOPIC, what).because(
            "the lock and what belongs to it are in different slots, and every request for it is refused",
        )
    } else {
        Finding::note(TOPIC, what).because(
            "on a single server it does no harm; after a move to a cluster every request for it is refused",
        )
    };
    vec![finding.remedy(trap.remedy())]
}
