//! Many locks held at once: what it costs to keep them. On one thread: "on one core" is part of the target.

use std::time::{Duration, Instant};

use leasehold::{Client, Guard, connect};
use leasehold_workload::{Ask, Conversation, Said, processor_time, resident};
use tokio::task::JoinSet;

/// Acquired side by side.
const AT_ONCE: usize = 64;

pub(super) fn run(ask: &Ask) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(hold(ask))
}

async fn hold(ask: &Ask) -> Result<(), String> {
    let mut conversation = Conversation::begin();
    let locks = connect(&ask.url).await.map_err(|error| error.to_string())?;
    let warm = locks.lock("bench:warm").acquire().await.map_err(|error| error.to_string())?;
    warm.release().await.map_err(|error| error.to_string())?;
    let before = resident();
    let guards = acquire(&locks, ask.tasks).await?;
    let after = resident();
    conversation.ready().await?;
    let (cpu, began) = (processor_time(), Instant::now());
    tokio::time::sleep(Duration::from_secs_f64(ask.seconds)).await;
    let said = Said {
        // Those still held, with time left: renewed in time, all of them, or some are missing here.
        done: guards.iter().filter(|guard| guard.check().is_ok() && !guard.remaining().is_zero()).count()
            as u64,
        seconds: began.elapsed().as_secs_f64(),
        cpu: processor_time() - cpu,
        resident: [before, after],
        ..Said::default()
    };
    conversation.say(&said)
}

async fn acquire(locks: &Client, count: usize) -> Result<Vec<Guard>, String> {
    let mut guards = Vec::with_capacity(count);
    let mut asking = JoinSet::new();
    for number in 0..count {
        let lock = locks.lock(&format!("bench:held:{number}"));
        asking.spawn(async move { lock.acquire().await });
        if asking.len() >= AT_ONCE {
            guards.extend(asking.join_next().await.map(won).transpose()?);
        }
    }
    for asked in asking.join_all().await {
        guards.push(asked.map_err(|error| error.to_string())?);
    }
    Ok(guards)
}

fn won(asked: Result<leasehold::Result<Guard>, tokio::task::JoinError>) -> Result<Guard, String> {
    asked.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}
