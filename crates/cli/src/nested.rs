//! A `run` inside a `run` that would wait for itself.
//!
//! The environment carries the ids of all locks held by the runs around us. Before one of us waits for a name, it
//! looks whether one of those ids holds it: that hold ends when our parent does, which is after us. An id is
//! unique, so neither the store nor the prefix needs comparing, and one whose hold has ended (a daemon started
//! under a lock) forbids nothing.

use leasehold::{ClaimId, Client, backend::Mode};

use crate::{
    args::{Asking, Permits},
    exit::Failure,
    supervise::hold::Hold,
};

/// The variable that carries the ids, with commas between.
pub(crate) const VARIABLE: &str = "LEASEHOLD_HELD";

/// Whether there is, or was, a run around this process.
pub(crate) fn is_inside() -> bool {
    !held().is_empty()
}

/// An error if one of these names, asked for like this, could only be had after a run around this one has ended.
/// Who does not wait is not refused: the lock itself says that it is busy.
pub(crate) async fn refuse(client: &Client, names: &[String], asking: &Asking) -> Result<(), Failure> {
    let held = held();
    if held.is_empty() || asking.nonblock {
        return Ok(());
    }
    for name in names {
        let state = client.inspect(name).await?;
        let holders = state.map(|state| state.holders).unwrap_or_default();
        let ours = holders.iter().filter(|holder| held.contains(&holder.id)).map(|holder| holder.mode);
        if !fits_beside(ours, asking) {
            return Err(Failure::usage(format!(
                "{name:?} is held by the run around this one, which would wait for itself; take it once, outside"
            )));
        }
    }
    Ok(())
}

/// Whether what is asked for can be had while these are held.
fn fits_beside(mut held: impl Iterator<Item = Mode>, asking: &Asking) -> bool {
    match asking.permits {
        Some(Permits { take, of }) => {
            let taken = held.map(|mode| match mode {
                Mode::Permits { take, .. } => take.get(),
                _ => of,
            });
            taken.fold(take, u32::saturating_add) <= of
        }
        None => held.all(|mode| asking.shared && mode == Mode::Shared),
    }
}

/// What the variable says for a child that runs under this hold.
pub(crate) fn with(hold: &Hold<'_>) -> String {
    let own = hold.guards().map(leasehold::Guard::id);
    held().into_iter().chain(own).map(|id| id.to_string()).collect::<Vec<_>>().join(",")
}

fn held() -> Vec<ClaimId> {
    let text = std::env::var(VARIABLE).unwrap_or_default();
    text.split(',').filter_map(|id| id.parse().ok()).collect()
}
