//! The end of a client, in order, and what it tells of what was not done by then.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use super::{Engine, contend::Patience, hold::Hold, leave};
use crate::{
    backend::Loss,
    error::{Error, ErrorKind, Operation, Result},
    id::ClaimId,
    sync::{Mutex, atomic::Ordering},
};

/// What a client had not finished when it was shut down. Of a service that was idle, both lists are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Farewell {
    /// Names that were still held, in order. Their holders were told that they are lost: that work was cut off.
    pub interrupted: Vec<String>,
    /// Those of them that the store did not take back. They end with their leases.
    pub unreleased: Vec<String>,
}

/// Holds that are to be given back, by the name each is known under; what is given back is struck off.
#[derive(Clone, Debug)]
struct Owed(Arc<Mutex<Vec<(ClaimId, String)>>>);

impl Engine {
    /// Ends everything: waiting claims are told, held locks are released, runs of jobs are written down, the store is closed.
    pub(crate) async fn shutdown(self: &Arc<Self>, within: Duration) -> Result<Farewell> {
        self.closed.store(true, Ordering::SeqCst);
        self.closing.notify_waiters();
        let holds = self.keeper.take_all();
        let owed = Owed::of(&holds);
        let interrupted = owed.names();
        for hold in holds {
            hold.lose(Loss::Shutdown);
            self.janitor.carry(Box::pin(owed.clone().give_back(hold)));
        }
        let end = Patience::Until(self.clock.now().after(within));
        let emptied = async {
            self.waiting.none().await;
            self.trying.none().await;
            self.running.none().await;
            self.idle().await;
        };
        let emptied = end.bear(&self.clock, emptied).await;
        let (requests, runs) =
            (self.janitor.len() + self.waiting.len() + self.trying.len(), self.running.len());
        let (keeper, backend) = (self.keeper.clone(), self.backend.clone());
        let written = async move { keeper.write_history(&*backend).await };
        let _ = end.bear(&self.clock, self.carry_on(written)).await;
        let backend = self.backend.clone();
        let closed = end.bear(&self.clock, self.carry_on(async move { backend.close().await })).await;
        let unreleased = owed.names();
        match (emptied, closed) {
            (Some(()), Some(closed)) => closed.map(|()| Farewell { interrupted, unreleased }),
            _ => Err(unfinished(requests, runs, &unreleased)),
        }
    }
}

impl Owed {
    fn of(holds: &[Arc<Hold>]) -> Self {
        let named = |hold: &Arc<Hold>| (hold.spec.id, hold.spec.key.name().to_owned());
        Self(Arc::new(Mutex::new(holds.iter().map(named).collect())))
    }

    /// A hold whose store says that it is over is over, however it ended; anything else is not known.
    async fn give_back(self, hold: Arc<Hold>) {
        let id = hold.spec.id;
        let over = match leave::withdraw(hold).await {
            Ok(()) => true,
            Err(error) => error.kind() == ErrorKind::Lost,
        };
        if over {
            let mut owed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            owed.retain(|(other, _)| *other != id);
        }
    }

    fn names(&self) -> Vec<String> {
        let owed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<String> = owed.iter().map(|(_, name)| name.clone()).collect();
        names.sort();
        names
    }
}

fn unfinished(requests: usize, runs: usize, unreleased: &[String]) -> Error {
    let mut message =
        format!("not done in time: {requests} requests are not answered yet; locks end with their leases");
    if runs > 0 {
        message.push_str("; runs of jobs that go on, and will be taken for dead: ");
        message.push_str(&runs.to_string());
    }
    if !unreleased.is_empty() {
        message.push_str("; not known to be released: ");
        message.push_str(&unreleased.join(", "));
    }
    Error::new(ErrorKind::Unavailable, Operation::Shutdown, message)
}
