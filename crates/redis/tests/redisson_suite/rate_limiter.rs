//! `RedissonRateLimiterTest`: so many in so long. Its cases about changing a rate are in `rate_limiter_changes`.

use std::time::Duration;

use leasehold_core::{ErrorKind, RateLimiter, backend::Share, time::Clock};
use tokio::task::JoinSet;

use crate::{
    common::eventually,
    stage::{Stage, play},
};

/// The interval of most cases.
const WHILE: Duration = Duration::from_millis(400);

/// One that does not end by itself.
const AGE: Duration = Duration::from_secs(600);

/// A limiter of so many in this long.
pub(crate) async fn limiter(stage: &Stage, permits: u32, per: Duration) -> RateLimiter {
    let limiter = stage.ours.rate_limiter("r");
    assert!(limiter.try_set_rate(permits, per).await.unwrap());
    limiter
}

/// What time does: makes the oldest so many takings older than the longest interval of these cases.
async fn age(stage: &Stage, oldest: usize) {
    let script = "for _, taking in ipairs(redis.call('zrange', KEYS[1], 0, ARGV[1] - 1)) do \
        redis.call('zincrby', KEYS[1], -600001, taking) end";
    stage.raw::<()>(&["EVAL", script, "1", "{r}:permits", &oldest.to_string()]).await;
}

/// The limiter's keys.
pub(crate) async fn keys(stage: &Stage) -> Vec<String> {
    let keys = stage.redis.keys().await;
    keys.into_iter().filter(|key| key == "r" || key.starts_with("{r}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_keep_alive_time() {
    play(async |stage| {
        let limiter = stage.ours.rate_limiter("r").keep("600ms");
        limiter.set_rate(5, "500ms").await.unwrap();
        assert!((1..=600).contains(&stage.ttl("r").await));
        eventually(async || stage.ttl("r").await == -2).await;
        let limiter = stage.ours.rate_limiter("r").keep("20s");
        limiter.set_rate(5, "10s").await.unwrap();
        stage.raw::<u32>(&["PEXPIRE", "r", "1000"]).await;
        assert!(limiter.try_acquire(1).await.unwrap());
        for key in ["r", "{r}:value", "{r}:permits"] {
            assert!(stage.ttl(key).await > 10_000, "use keeps {key}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_expire2() {
    play(async |stage| {
        let limiter = limiter(stage, 3, WHILE * 100).await;
        stage.raw::<u32>(&["PEXPIRE", "r", "500"]).await;
        assert!(limiter.try_acquire(1).await.unwrap());
        assert_eq!(keys(stage).await.len(), 3);
        eventually(async || keys(stage).await.is_empty()).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_expire() {
    play(async |stage| {
        let limiter = limiter(stage, 3, WHILE * 100).await;
        assert!(limiter.try_acquire(1).await.unwrap());
        // As Redisson's expire does: all the keys.
        for key in keys(stage).await {
            stage.raw::<u32>(&["PEXPIRE", &key, "200"]).await;
        }
        eventually(async || keys(stage).await.is_empty()).await;
        let error = limiter.try_acquire(1).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_rate_value() {
    play(async |stage| {
        let _ours = limiter(stage, 200, AGE).await;
        let mut running = JoinSet::new();
        for task in 0..20 {
            let client = if task % 2 == 0 { &stage.ours } else { &stage.theirs };
            let limiter = client.rate_limiter("r");
            running.spawn(async move {
                let mut granted = 0;
                for _ in 0..20 {
                    granted += u32::from(limiter.try_acquire(1).await.unwrap());
                }
                granted
            });
        }
        let mut granted = 0;
        while let Some(done) = running.join_next().await {
            granted += done.unwrap();
        }
        assert_eq!(granted, 200, "in one window exactly the rate");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_acquisition_interval() {
    play(async |stage| {
        let limiter = limiter(stage, 2, AGE).await;
        assert!(limiter.try_acquire(1).await.unwrap() && limiter.try_acquire(1).await.unwrap());
        assert!(!limiter.try_acquire(1).await.unwrap());
        // One of the two is as old as the interval: it alone is back.
        age(stage, 1).await;
        assert_eq!(limiter.available().await.unwrap(), 1);
        assert!(limiter.try_acquire(1).await.unwrap());
        assert!(!limiter.try_acquire(1).await.unwrap());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_rate_config() {
    play(async |stage| {
        let limiter = stage.ours.rate_limiter("r");
        assert!(limiter.rate().await.unwrap().is_none());
        limiter.set_rate(7, "3s").await.unwrap();
        let rate = stage.theirs.rate_limiter("r").rate().await.unwrap().unwrap();
        assert_eq!((rate.permits, rate.per, rate.share), (7, Duration::from_secs(3), Share::All));
        let fields: Vec<Option<String>> = stage.raw(&["HMGET", "r", "rate", "interval", "type"]).await;
        assert_eq!(fields, [Some("7".to_owned()), Some("3000".to_owned()), Some("0".to_owned())]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_available_permits() {
    play(async |stage| {
        let limiter = limiter(stage, 10, WHILE).await;
        assert_eq!(limiter.available().await.unwrap(), 10);
        assert!(limiter.try_acquire(7).await.unwrap());
        eventually(async || limiter.available().await.unwrap() == 10).await;
        assert!(limiter.try_acquire(10).await.unwrap());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_permits_exceeding() {
    play(async |stage| {
        let limiter = limiter(stage, 1, WHILE).await;
        let error = limiter.try_acquire(20).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert!(limiter.try_acquire(1).await.unwrap(), "it works on");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_zero_timeout() {
    play(async |stage| {
        let limiter = limiter(stage, 5, AGE).await.wait("0s");
        for _ in 0..2 {
            let mut granted = 0;
            for _ in 0..10 {
                granted += u32::from(limiter.try_acquire(1).await.unwrap());
            }
            assert_eq!(granted, 5);
            age(stage, 5).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_try_acquire() {
    play(async |stage| {
        let limiter = limiter(stage, 1, Duration::from_secs(60)).await;
        assert!(limiter.clone().wait("1s").try_acquire(1).await.unwrap());
        let clock = Clock::boot();
        let began = clock.now();
        assert!(!limiter.clone().wait("50s").try_acquire(1).await.unwrap());
        assert!(
            began.until(clock.now()) < Duration::from_secs(25),
            "what cannot come in time is said at once"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_acquire() {
    play(async |stage| {
        let limiter = limiter(stage, 1, WHILE / 2).await;
        let (clock, count) = (Clock::boot(), 5);
        let began = clock.now();
        for _ in 0..count {
            limiter.acquire(1).await.unwrap();
        }
        assert!(began.until(clock.now()) >= WHILE / 2 * (count - 1));
        assert!(stage.channels().await.is_empty(), "who waits for a rate needs no message");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test() {
    play(async |stage| {
        let limiter = limiter(stage, 10, AGE).await;
        assert!(!limiter.try_set_rate(20, "1s").await.unwrap());
        for _ in 0..3 {
            for round in 0..20 {
                assert_eq!(limiter.try_acquire(1).await.unwrap(), round < 10);
            }
            age(stage, 10).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_remove() {
    play(async |stage| {
        let limiter = stage.ours.rate_limiter("r");
        assert!(!limiter.remove().await.unwrap());
        limiter.set_rate(5, "10s").await.unwrap();
        assert!(limiter.try_acquire(1).await.unwrap());
        assert!(limiter.remove().await.unwrap());
        assert!(keys(stage).await.is_empty());
    })
    .await;
}

/// Eight tasks of two clients take so many in all; no so many in a row come within less than the interval.
async fn paced(stage: &Stage, rate: u32, in_all: u32) {
    let _ours = limiter(stage, rate, WHILE).await;
    let mut running = JoinSet::new();
    for task in 0..8 {
        let client = if task % 2 == 0 { &stage.ours } else { &stage.theirs };
        let limiter = client.rate_limiter("r");
        running.spawn(async move {
            for _ in 0..in_all / 8 {
                limiter.acquire(1).await.unwrap();
            }
        });
    }
    // By the server's clock, which grants: what is noted there is looked at while it happens.
    while !running.is_empty() {
        let taken: Vec<(Vec<u8>, f64)> = stage.raw(&["ZRANGE", "{r}:permits", "0", "-1", "WITHSCORES"]).await;
        let newest = taken.last().map_or(0.0, |(_, when)| *when);
        let recent = taken.iter().filter(|(_, when)| newest - when < WHILE.as_secs_f64() * 1000.0).count();
        assert!(recent <= rate as usize, "{recent} of {rate} in {WHILE:?}");
        while let Some(done) = running.try_join_next() {
            done.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_concurrency2() {
    play(async |stage| paced(stage, 18, 80).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_concurrency() {
    play(async |stage| paced(stage, 10, 40).await).await;
}
