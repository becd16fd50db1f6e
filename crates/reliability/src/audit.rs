//! What is left when all is over: on the store, by the store's own words and by the library's, and in the workers.

use std::time::Duration;

use leasehold::{
    Settings,
    backend::{Guarantee, LockState, Waiter},
};
use tokio::time::timeout;

use crate::{fleet::Ending, listing, packs::Pack};

/// How long the store may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a worker's last word about something begins that the store still lists as its own, after a lease and more.
pub const LEFT: &str = "left ";

/// Everything that should not be there, in words; and what the store says its locks are worth.
pub fn leaks(pack: &dyn Pack, endings: &[Ending], killed: &[String]) -> (Vec<String>, Option<Guarantee>) {
    let mut leaks: Vec<String> = match pack.leftovers(killed) {
        Ok(left) => left.into_iter().map(|left| format!("the store keeps {left}")).collect(),
        Err(error) => vec![format!("the store does not say what it keeps: {error}")],
    };
    let claim = match listed(&pack.url()) {
        Ok((locks, claim)) => {
            leaks.extend(locks.iter().filter_map(|lock| in_use(lock, killed)));
            Some(claim)
        }
        Err(problem) => {
            leaks.push(problem);
            None
        }
    };
    leaks.extend(endings.iter().flat_map(|ending| of_worker(ending, pack.files())));
    (leaks, claim)
}

/// What a worker still had, if it may have so many more open files than at first.
fn of_worker(ending: &Ending, files: u64) -> Vec<String> {
    let process = ending.process;
    let Some(words) = &ending.words else { return vec![format!("worker {process} did not end in order")] };
    let leak = |(word, count): &(String, u64)| match (word.as_str(), count) {
        (word, _) if word.starts_with(LEFT) => Some(format!("worker {process} {word}")),
        ("idle", 0) => Some(format!("worker {process} was still busy in the background")),
        ("held" | "waiting" | "tidying", 1..) => Some(format!("worker {process}: {word} {count}")),
        ("files", more) if *more > files => Some(format!("worker {process}: {more} open files more")),
        _ => None,
    };
    words.iter().filter_map(leak).collect()
}

/// Names that the library itself still finds, and what it says of the store.
fn listed(url: &str) -> Result<(Vec<LockState>, Guarantee), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime to look for leaks: {error}"))?;
    let look = async {
        let client = leasehold::connect_with(url, Settings::default()).await?;
        let locks = listing::all(&client).await?;
        let claim = client.info().guarantee;
        drop(client.shutdown(Duration::from_secs(1)).await);
        Ok::<_, leasehold::Error>((locks, claim))
    };
    match runtime.block_on(async { timeout(PATIENCE, look).await }) {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(error)) => Err(format!("the store cannot be looked at: {error}")),
        Err(_) => Err("the store does not answer".to_owned()),
    }
}

/// A name that is in use, and not only by the killed.
fn in_use(lock: &LockState, killed: &[String]) -> Option<String> {
    let lives = |waiter: &&Waiter| !killed.contains(&waiter.who.client.to_string());
    let waiters: Vec<String> = lock
        .waiters
        .iter()
        .filter(lives)
        .map(|waiter| format!("{} of process {} for {:?}", waiter.id, waiter.who.pid, waiter.waited))
        .collect();
    let holders: Vec<String> = lock.holders.iter().map(|holder| holder.id.to_string()).collect();
    let is_free = holders.is_empty() && waiters.is_empty();
    (!is_free).then(|| format!("{} is held by {holders:?}, wanted by {waiters:?}", lock.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: u64 = 12;

    fn said(words: &[(&str, u64)]) -> Vec<String> {
        let words = words.iter().map(|(word, count)| ((*word).to_owned(), *count));
        of_worker(&Ending { process: 3, words: Some(words.collect()) }, FILES)
    }

    #[test]
    fn whatever_a_worker_still_has_is_a_leak() {
        let fine = [("idle", 1), ("held", 0), ("waiting", 0), ("tidying", 0), ("files", FILES)];
        assert_eq!(said(&fine), Vec::<String>::new());
        for leak in [("idle", 0), ("held", 1), ("waiting", 2), ("tidying", 1), ("files", FILES + 1)] {
            assert_eq!(said(&[leak]).len(), 1, "{leak:?}");
        }
        let left = format!("{LEFT}lock-0 (1 holders, 0 waiters)");
        assert_eq!(said(&[(&left, 1)]), [format!("worker 3 {left}")]);
        assert_eq!(of_worker(&Ending { process: 3, words: None }, FILES).len(), 1);
    }
}
