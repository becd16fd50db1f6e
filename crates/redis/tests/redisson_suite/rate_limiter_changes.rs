//! `RedissonRateLimiterTest`, its cases about changing a rate.

use std::time::Duration;

use leasehold_core::{ErrorKind, backend::Share};

use crate::{
    rate_limiter::{keys, limiter},
    stage::play,
};

const WHILE: Duration = Duration::from_secs(600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_update_rate_config() {
    play(async |stage| {
        let limiter = limiter(stage, 1, WHILE).await;
        limiter.set_rate(2, "3s").await.unwrap();
        let rate = stage.theirs.rate_limiter("r").rate().await.unwrap().unwrap();
        assert_eq!((rate.permits, rate.per), (2, Duration::from_secs(3)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_change_rate() {
    play(async |stage| {
        for limiter in [stage.ours.rate_limiter("r").per_client(), stage.ours.rate_limiter("r")] {
            for rate in [10, 20] {
                limiter.set_rate(rate, WHILE).await.unwrap();
                assert!(limiter.try_acquire(1).await.unwrap());
                assert_eq!(limiter.available().await.unwrap(), u64::from(rate) - 1, "a new rate begins anew");
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_set_state_args_not_keep_state() {
    play(async |stage| {
        let limiter = limiter(stage, 10, WHILE).await;
        assert!(limiter.try_acquire(3).await.unwrap());
        limiter.set_rate(20, WHILE).await.unwrap();
        assert_eq!(limiter.available().await.unwrap(), 20);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_update_rate_mode_change_clears_state() {
    play(async |stage| {
        let limiter = limiter(stage, 10, WHILE).await;
        assert!(limiter.try_acquire(4).await.unwrap());
        let each = stage.ours.rate_limiter("r").per_client();
        each.set_rate(10, WHILE).await.unwrap();
        assert_eq!(each.rate().await.unwrap().unwrap().share, Share::Each);
        assert_eq!(each.available().await.unwrap(), 10);
        assert_eq!(keys(stage).await.len(), 2, "the hash and our number; nothing of the type before");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_update_rate_keep_alive_time_less_than_interval_throws() {
    play(async |stage| {
        let error = stage.ours.rate_limiter("r").keep("1s").set_rate(1, "2s").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(keys(stage).await.is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_update_rate_rate_interval_change_drops_expired() {
    play(async |stage| {
        let limiter = limiter(stage, 10, WHILE).await;
        assert!(limiter.try_acquire(4).await.unwrap());
        limiter.set_rate(10, "100ms").await.unwrap();
        assert_eq!(limiter.available().await.unwrap(), 10);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_update_rate_per_client_uses_client_state() {
    play(async |stage| {
        let (ours, theirs) = (stage.ours.rate_limiter("r").per_client(), stage.theirs.rate_limiter("r"));
        ours.set_rate(20, WHILE).await.unwrap();
        assert!(ours.try_acquire(3).await.unwrap());
        assert_eq!((ours.available().await.unwrap(), theirs.available().await.unwrap()), (17, 20));
    })
    .await;
}
