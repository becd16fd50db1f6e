//! `RedissonLockHeavyTest`, and what the reactive classes test of owners: a lock, a value and a permit in every round.

use leasehold_core::Owner;
use tokio::task::JoinSet;

use crate::stage::{Counter, Stage, play};

const TASKS: [usize; 4] = [2, 5, 10, 20];
const ROUNDS: u64 = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lock_unlock_r_lock() {
    play(async |stage| heavy(stage, None).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn try_lock_unlock_r_lock() {
    play(async |stage| heavy(stage, Some("9ms")).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_is_held_by_thread() {
    play(async |stage| {
        let (one, two) = (Owner::new(), Owner::new());
        let (first, second) = (stage.ours.lock("n").owner(&one), stage.ours.lock("n").owner(&two));
        let guard = first.acquire().await.unwrap();
        assert!(second.try_acquire().await.unwrap().is_none());
        first.try_acquire().await.unwrap().unwrap().release().await.unwrap();
        let id = guard.id();
        guard.release().await.unwrap();
        let guard = second.acquire().await.unwrap();
        assert_eq!((stage.count("n", id).await, stage.count("n", guard.id()).await), (0, 1));
        guard.release().await.unwrap();
    })
    .await;
}

/// Tasks that in every round hold a lock, add to a value under it, and take and give back a permit. With patience
/// they do the round only if they get the lock in that time.
async fn heavy(stage: &Stage, patience: Option<&'static str>) {
    for tasks in TASKS {
        let (counter, mut running) = (Counter::default(), JoinSet::new());
        for task in 0..tasks {
            let client = if task % 2 == 0 { stage.ours.clone() } else { stage.theirs.clone() };
            let counter = counter.clone();
            running.spawn(async move {
                let mut done = 0;
                for _ in 0..ROUNDS {
                    let lock = client.lock("n");
                    let guard = match patience {
                        Some(patience) => lock.wait(patience).try_acquire().await.unwrap(),
                        None => Some(lock.acquire().await.unwrap()),
                    };
                    let Some(guard) = guard else { continue };
                    counter.add().await;
                    done += 1;
                    client.semaphore("s", 3).acquire().await.unwrap().release().await.unwrap();
                    guard.release().await.unwrap();
                }
                done
            });
        }
        let mut rounds = 0;
        while let Some(done) = running.join_next().await {
            rounds += done.unwrap();
        }
        assert_eq!(counter.get(), rounds);
        assert!(patience.is_some() || rounds == tasks as u64 * ROUNDS);
        assert!(!stage.is_locked("n").await && !stage.is_locked("s").await);
    }
}
