//! What only counts, in Redis: the number of a semaphore that other programs share, and what was taken of a rate.

mod common;

use common::Stage;
use leasehold_core::{ErrorKind, backend::BreakOutcome};

#[tokio::test]
async fn a_semaphore_that_counts_is_a_number_and_our_leases_beside_it() {
    let Some(stage) = Stage::set().await else { return };
    let (client, mut messages) = (stage.client().await, stage.listen().await);
    let semaphore = client.semaphore("c", 3).counting();
    stage.raw::<()>(&["SET", "c", "2"]).await;
    let guard = semaphore.permits(2).ttl("20s").acquire().await.unwrap();
    let (id, counted) = (guard.id(), "leasehold_counting:{c}");
    assert_eq!(stage.raw::<i64>(&["GET", "c"]).await, 0);
    assert!(!stage.raw::<bool>(&["EXISTS", "{c}:timeout", "leasehold_permits:{c}"]).await);
    let score = async || stage.raw::<f64>(&["ZSCORE", counted, &format!("2 {id}")]).await;
    let before = score().await;
    guard.extend("40s").await.unwrap();
    assert!(score().await >= before + 19_000.0, "a renewal finds it");
    guard.release().await.unwrap();
    assert_eq!(messages.next().await, ("redisson_sc:{c}".to_owned(), "2".to_owned()));
    assert!(!stage.raw::<bool>(&["EXISTS", counted]).await);
    assert_eq!((stage.raw::<i64>(&["GET", "c"]).await, stage.raw::<i64>(&["PTTL", "c"]).await), (2, -1));
    let guard = semaphore.permits(1).acquire().await.unwrap();
    assert_eq!(client.break_hold("c", guard.id(), "it hangs").await.unwrap(), BreakOutcome::Broken);
    assert_eq!(messages.next().await.1, "2");
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(stage.raw::<i64>(&["GET", "c"]).await, 2, "what is broken comes back once");
    // Java takes the number away while one of us holds: nothing of it is left, and nothing is made of nothing.
    let guard = semaphore.permits(2).acquire().await.unwrap();
    stage.raw::<u32>(&["DEL", "c"]).await;
    drop(guard.release().await);
    assert!(!stage.raw::<bool>(&["EXISTS", "c"]).await);
    let guard = semaphore.permits(3).try_acquire().await.unwrap().unwrap();
    let members: Vec<String> = stage.raw(&["ZRANGE", counted, "0", "-1"]).await;
    assert_eq!(members, [format!("3 {}", guard.id())]);
}

#[tokio::test]
async fn a_limiter_does_not_believe_a_number_that_cannot_be() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    let limiter = client.rate_limiter("r");
    limiter.set_rate(5, "1h").await.unwrap();
    limiter.acquire(4).await.unwrap();
    stage.raw::<u32>(&["DEL", "{r}:value"]).await;
    assert_eq!(limiter.available().await.unwrap(), 1, "a lost number is reckoned anew, not filled up");
    // What was taken is lost, and the number is not: Redisson's limiter would wait for ever.
    stage.raw::<u32>(&["DEL", "{r}:permits"]).await;
    assert_eq!(limiter.available().await.unwrap(), 5);
    limiter.acquire(5).await.unwrap();
    // An hour later; and Java has given some back meanwhile, which makes more than there may be.
    age(&stage, "{r}:permits", "3600000").await;
    stage.raw::<i64>(&["INCRBY", "{r}:value", "3"]).await;
    assert!(limiter.try_acquire(2).await.unwrap());
    assert_eq!(limiter.available().await.unwrap(), 3);
}

#[tokio::test]
async fn a_limiter_says_when_enough_are_back_and_not_only_the_first() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    let limiter = client.rate_limiter("r").wait("1s");
    limiter.set_rate(2, "1h").await.unwrap();
    limiter.acquire(1).await.unwrap();
    age(&stage, "{r}:permits", "1800000").await;
    limiter.acquire(1).await.unwrap();
    let after = async |permits| {
        let error = limiter.acquire(permits).await.unwrap_err();
        error.busy().unwrap().retry_after.unwrap().as_secs()
    };
    assert!((1500..=1800).contains(&after(1).await) && (3300..=3600).contains(&after(2).await));
}

/// Makes what was taken of a rate so many milliseconds older.
async fn age(stage: &Stage, takings: &str, by: &str) {
    let script = "for _, m in ipairs(redis.call('zrange', KEYS[1], 0, -1)) do \
                  redis.call('zincrby', KEYS[1], -ARGV[1], m) end";
    stage.raw::<()>(&["EVAL", script, "1", takings, by]).await;
}
