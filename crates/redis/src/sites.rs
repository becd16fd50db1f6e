//! Where in a client's code its locks were asked for: beside who the client is, in a hash of its own.
//!
//! Told with the rest of presence, of what has lasted for a while, one command for many; it goes with the client. Read
//! only when one name is looked at, never for a listing: that would cost a question for each client of each page.

use std::{collections::BTreeMap, time::Duration};

use futures_util::future::join_all;
use leasehold_core::{
    CallSite, ClaimId, ClientId, Who,
    backend::{LockState, Sign, Standing},
};

use crate::{answer, connect::Topology, names};

/// How long they are kept after the last sign of life.
const KEPT: Duration = Duration::from_secs(35);

/// So many in one command.
const TOGETHER: usize = 256;

/// Of so many clients that hold or wait for one name it is asked.
const CLIENTS: usize = 32;

/// Tells where locks that began were asked for, and forgets those that ended. Not waited for.
pub(crate) fn tell(topology: &dyn Topology, who: &Who, signs: &[Sign]) {
    let key = names::sites(who.client);
    let wire = &topology.node(&key).wire;
    let (mut begun, mut ended) = (Vec::new(), Vec::new());
    for sign in signs {
        match sign {
            Sign::Stands { standing: Standing { id, location: Some(location), .. }, .. } => {
                begun.push((id.to_string(), location.to_string()));
            }
            Sign::Ended(Standing { id, location: Some(_), .. }) => ended.push(id.to_string()),
            _ => {}
        }
    }
    for some in ended.chunks(TOGETHER) {
        let mut command = redis::cmd("HDEL");
        command.arg(&key).arg(some);
        wire.tell(command);
    }
    for some in begun.chunks(TOGETHER) {
        let mut command = redis::cmd("HSET");
        command.arg(&key);
        for (id, location) in some {
            command.arg(id).arg(location);
        }
        wire.tell(command);
    }
    let mut command = redis::cmd("PEXPIRE");
    command.arg(&key).arg(KEPT.as_millis() as u64);
    wire.tell(command);
}

/// Fills in where those who hold and wait asked for it, as far as they told.
pub(crate) async fn fill(topology: &dyn Topology, state: &mut LockState) {
    let holders = state.holders.iter().map(|holder| holder.id);
    let mut clients: BTreeMap<ClientId, Vec<ClaimId>> = BTreeMap::new();
    for id in holders.chain(state.waiters.iter().map(|waiter| waiter.id)) {
        clients.entry(id.client()).or_default().push(id);
    }
    let asked = clients.into_iter().take(CLIENTS).map(|(client, ids)| ask(topology, client, ids));
    let sites: BTreeMap<ClaimId, CallSite> = join_all(asked).await.into_iter().flatten().collect();
    for holder in &mut state.holders {
        holder.location = sites.get(&holder.id).cloned();
    }
    for waiter in &mut state.waiters {
        waiter.location = sites.get(&waiter.id).cloned();
    }
}

async fn ask(topology: &dyn Topology, client: ClientId, ids: Vec<ClaimId>) -> Vec<(ClaimId, CallSite)> {
    let key = names::sites(client);
    let mut command = redis::cmd("HMGET");
    command.arg(&key);
    for id in &ids {
        command.arg(id.to_string());
    }
    let Ok(found) = topology.call(&key, command).await else { return Vec::new() };
    let texts = answer::list(&found).unwrap_or_default().iter().map(answer::text);
    ids.into_iter().zip(texts).filter_map(|(id, text)| Some((id, CallSite::from(text?.as_str())))).collect()
}
