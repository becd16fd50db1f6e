//! Six servers become a cluster: slots, epochs, introductions, then replicas. Without a tool, in about two seconds.

use std::io;

use super::{
    super::{Redis, Role, Setup, together},
    NODES, PRIMARIES, SLOTS, view,
};
use crate::servers::{StartError, free_port};

/// A server that may join a cluster. Its second port is found as its first is: ten thousand above, which is usual, may
/// be no port at all.
pub(super) fn start_node(setup: &Setup) -> Result<Redis, StartError> {
    let started = setup.start_with(|| {
        let bus = free_port()?.to_string();
        let options: [(&str, &str); 5] = [
            ("--cluster-enabled", "yes"),
            ("--cluster-config-file", "nodes.conf"),
            ("--cluster-node-timeout", "1000"),
            ("--cluster-require-full-coverage", "no"),
            ("--cluster-port", &bus),
        ];
        Ok(options.iter().flat_map(|(option, value)| [(*option).to_owned(), (*value).to_owned()]).collect())
    });
    started.map(Redis)
}

/// Makes one cluster of them: the first half primaries, the second their replicas in the same order.
pub(super) fn form(nodes: &[Redis]) -> io::Result<()> {
    share_slots(nodes)?;
    introduce(nodes)?;
    together::until("all nodes of the cluster know each other", || {
        nodes.iter().all(knows_all).then_some(())
    })?;
    let (primaries, replicas) = nodes.split_at(PRIMARIES);
    for (primary, replica) in primaries.iter().zip(replicas) {
        replica.demand(&["CLUSTER", "REPLICATE", &view::own(primary)?.id])?;
    }
    Ok(())
}

/// Each primary its third of the slots, and each node an epoch of its own, so that none collide later.
fn share_slots(nodes: &[Redis]) -> io::Result<()> {
    for (index, node) in nodes.iter().enumerate() {
        node.demand(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()])?;
    }
    let border = |index: usize| index * usize::from(SLOTS) / PRIMARIES;
    for (index, node) in nodes[..PRIMARIES].iter().enumerate() {
        let (first, last) = (border(index), border(index + 1) - 1);
        node.demand(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()])?;
    }
    Ok(())
}

/// Everybody to everybody: hearsay alone takes seconds.
fn introduce(nodes: &[Redis]) -> io::Result<()> {
    for (index, node) in nodes.iter().enumerate() {
        for other in &nodes[index + 1..] {
            let (port, bus) = (other.port().to_string(), bus_port(other)?);
            node.demand(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus])?;
        }
    }
    Ok(())
}

pub(super) fn bus_port(node: &Redis) -> io::Result<String> {
    let reply = node.demand(&["CONFIG", "GET", "cluster-port"])?;
    let port = reply.parts().get(1).and_then(|port| port.text()).map(str::to_owned);
    port.ok_or_else(|| io::Error::other(format!("{} has no cluster port", node.address())))
}

fn knows_all(node: &Redis) -> bool {
    view::of(node).is_ok_and(|seen| seen.len() == NODES && seen.iter().all(view::Seen::is_well))
}

/// Whether all nodes run, see each other and three primaries with slots, and every replica has its primary's data.
pub(super) fn is_settled(nodes: &[Redis]) -> bool {
    nodes.iter().all(|node| knows_all(node) && sees_it_whole(node) && is_linked(node))
}

fn sees_it_whole(node: &Redis) -> bool {
    let healthy = node.demand(&["CLUSTER", "INFO"]).is_ok_and(|info| {
        let info = info.text().unwrap_or_default();
        info.contains("cluster_state:ok") && info.contains(&format!("cluster_slots_ok:{SLOTS}"))
    });
    healthy
        && view::of(node).is_ok_and(|seen| {
            let primaries = seen.iter().filter(|seen| seen.is("master") && seen.has_slots());
            let replicas = seen.iter().filter(|seen| seen.is("slave"));
            primaries.count() == PRIMARIES && replicas.count() == NODES - PRIMARIES
        })
}

fn is_linked(node: &Redis) -> bool {
    node.role().is_ok_and(|role| matches!(role, Role::Primary | Role::Replica { linked: true, .. }))
}
