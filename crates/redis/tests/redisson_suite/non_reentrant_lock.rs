//! `RedissonNonReentrantLockTest` and `RedissonNonReentrantFairLockTest`: without an owner no lock of ours is re-entrant.

/// The three cases of a kind.
macro_rules! cases {
    ($kind:ident, $make:expr) => {
        mod $kind {
            use crate::{
                common::eventually,
                stage::{LONG, Make, play, wait},
            };

            const MAKE: Make = $make;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn test_contending_thread_blocks_and_acquires_on_release() {
                play(async |stage| {
                    let guard = MAKE(&stage.ours, "n").ttl(LONG).acquire().await.unwrap();
                    let waiting = wait(&MAKE(&stage.ours, "n"));
                    eventually(async || stage.ours.stats().waiting == 1).await;
                    assert!(!waiting.is_finished());
                    guard.release().await.unwrap();
                    waiting.await.unwrap().release().await.unwrap();
                })
                .await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn test_same_thread_reacquire_throws() {
                play(async |stage| {
                    let lock = MAKE(&stage.ours, "n");
                    let guard = lock.acquire().await.unwrap();
                    assert!(lock.try_acquire().await.unwrap().is_none());
                    let error = lock.wait("20ms").acquire().await.unwrap_err();
                    let holders = &error.busy().unwrap().holders;
                    assert_eq!(holders[0].id, guard.id(), "who asks is told that it waits for itself");
                    assert_eq!(stage.count("n", guard.id()).await, 1);
                    guard.release().await.unwrap();
                })
                .await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn test_cross_instance_same_thread_reentry_throws() {
                play(async |stage| {
                    let guard = MAKE(&stage.ours, "n").acquire().await.unwrap();
                    assert!(MAKE(&stage.ours.clone(), "n").try_acquire().await.unwrap().is_none());
                    assert!(MAKE(&stage.theirs, "n").try_acquire().await.unwrap().is_none());
                    assert_eq!(stage.count("n", guard.id()).await, 1);
                    guard.release().await.unwrap();
                })
                .await;
            }
        }
    };
}

cases!(lock, leasehold_core::Client::lock);
cases!(fair_lock, |client, name| client.lock(name).fair());
