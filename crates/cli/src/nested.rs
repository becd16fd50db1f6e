//! A `run` inside a `run` that would wait for itself.
//!
//! The environment carries the ids of all locks held by the runs around us. Before one of us waits for a name, it
//! looks whether one of those ids holds it: that hold ends when our parent does, which is after us. An id is
//! unique, so neither the store nor the prefix needs comparing, and one whose hold has ended (a daemon started
//! under a lock) forbids nothing.

use leasehold::{ClaimId, Client};

use crate::{exit::Failure, supervise::hold::Hold};

/// The variable that carries the ids, with commas between.
pub(crate) const VARIABLE: &str = "LEASEHOLD_HELD";

/// An error if any of these names is held by a run around this one: even to share it could mean to wait behind
/// somebody who waits for that run.
pub(crate) async fn refuse(client: &Client, names: &[String]) -> Result<(), Failure> {
    let held = held();
    if held.is_empty() {
        return Ok(());
    }
    for name in names {
        let state = client.inspect(name).await?;
        if state.is_some_and(|state| state.holders.iter().any(|holder| held.contains(&holder.id))) {
            return Err(Failure::usage(format!(
                "{name:?} is held by the run around this one, which would wait for itself; take it once, outside"
            )));
        }
    }
    Ok(())
}

/// What the variable says for a child that runs under this hold.
pub(crate) fn with(hold: &Hold) -> String {
    let own = hold.guards().map(leasehold::Guard::id);
    held().into_iter().chain(own).map(|id| id.to_string()).collect::<Vec<_>>().join(",")
}

fn held() -> Vec<ClaimId> {
    let text = std::env::var(VARIABLE).unwrap_or_default();
    text.split(',').filter_map(|id| id.parse().ok()).collect()
}
