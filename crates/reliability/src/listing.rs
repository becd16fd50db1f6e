//! Everything that a store lists of its locks, page by page.

use leasehold::{Client, Result, backend::LockState};

/// So many names at once.
const PAGE: usize = 100;

/// All names that the library finds in use.
///
/// # Errors
/// If the store cannot be asked.
///
/// # Cancel safety
/// Nothing is lost by dropping it.
pub async fn all(client: &Client) -> Result<Vec<LockState>> {
    let (mut locks, mut cursor) = (Vec::new(), None);
    loop {
        let page = client.list("", cursor.as_deref(), PAGE).await?;
        locks.extend(page.locks);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(locks);
        }
    }
}

/// In words, what this client has of these or waits for.
pub fn of(client: &Client, locks: &[LockState]) -> Vec<String> {
    let own = client.who().client;
    let has = |lock: &&LockState| {
        let mut who = lock.holders.iter().map(|holder| &holder.who);
        let mut waits = lock.waiters.iter().map(|waiter| &waiter.who);
        who.any(|who| who.client == own) || waits.any(|who| who.client == own)
    };
    let words = |lock: &LockState| {
        format!("{} ({} holders, {} waiters)", lock.name, lock.holders.len(), lock.waiters.len())
    };
    locks.iter().filter(has).map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pages_are_read_and_only_what_is_ones_own_is_named() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = leasehold::connect("memory:").await.unwrap();
            let mut guards = Vec::new();
            for index in 0..=PAGE {
                guards.push(client.lock(&format!("lock-{index}")).acquire().await.unwrap());
            }
            let locks = all(&client).await.unwrap();
            assert_eq!(locks.len(), PAGE + 1);
            assert_eq!(of(&client, &locks).len(), PAGE + 1);
            let other = leasehold::connect("memory:").await.unwrap();
            assert_eq!(of(&other, &locks), Vec::<String>::new());
            for guard in guards {
                guard.release().await.unwrap();
            }
            assert_eq!(of(&client, &all(&client).await.unwrap()), Vec::<String>::new());
        });
    }
}
