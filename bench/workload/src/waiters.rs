//! Many wait for a lock that one holds: what waiting costs while nothing happens.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::sleep};

use crate::{Ask, Conversation, Lock, Peer, Said, processor_time, resident, warm};

/// Until all of them wait and whatever that takes has been said: who waits is written down once, and a client that has
/// held something for a second begins to listen for whether it is taken away.
const SETTLE: Duration = Duration::from_secs(3);

pub(crate) async fn run<P: Peer>(peer: &P, ask: &Ask, conversation: &mut Conversation) -> Result<(), String> {
    warm(peer).await?;
    let before = resident();
    // Held by another client, as it would be in another process.
    let holder = P::connect(ask).await?;
    let lock = holder.lock("bench:waiters");
    let held = lock.acquire().await?;
    let got = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..ask.tasks {
        tasks.spawn(wait(peer.lock("bench:waiters"), got.clone()));
    }
    sleep(SETTLE).await;
    let after = resident();
    conversation.ready().await?;
    let (cpu, began) = (processor_time(), Instant::now());
    sleep(Duration::from_secs_f64(ask.seconds)).await;
    let said = Said {
        done: got.load(Relaxed),
        seconds: began.elapsed().as_secs_f64(),
        cpu: processor_time() - cpu,
        resident: [before, after],
        ..Said::default()
    };
    conversation.say(&said)?;
    // What comes of a release would be counted too: whoever listens has heard enough, and says no more.
    conversation.hear().await;
    lock.release(held).await
}

async fn wait(lock: impl Lock, got: Arc<AtomicU64>) {
    loop {
        match lock.acquire().await {
            Ok(held) => {
                got.fetch_add(1, Relaxed);
                drop(lock.release(held).await);
                return;
            }
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}
