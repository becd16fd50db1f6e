//! `RedissonCountDownLatchTest` and its kin.

use tokio::task::JoinSet;

use crate::{
    common::{eventually, spawn},
    stage::{SHORT, play},
};

const CHANNEL: &str = "redisson_countdownlatch__channel__{l}";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_await_timeout() {
    play(async |stage| {
        stage.theirs.latch("l").arm(1).await.unwrap();
        let latch = stage.ours.latch("l");
        let waiting = spawn(async move { latch.wait_for("20s").await.unwrap() });
        stage.heard_by(CHANNEL, 1).await;
        stage.theirs.latch("l").count_down().await.unwrap();
        assert!(waiting.await.unwrap());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_await_timeout_fail() {
    play(async |stage| {
        stage.theirs.latch("l").arm(1).await.unwrap();
        assert!(!stage.ours.latch("l").wait_for(SHORT).await.unwrap());
        stage.theirs.latch("l").count_down().await.unwrap();
        assert!(stage.ours.latch("l").wait_for(SHORT).await.unwrap());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_multi_await() {
    play(async |stage| {
        stage.theirs.latch("l").arm(5).await.unwrap();
        let mut waiting = JoinSet::new();
        for _ in 0..5 {
            let latch = stage.ours.latch("l");
            waiting.spawn(async move { latch.wait_for("20s").await.unwrap() });
        }
        eventually(async || stage.ours.stats().waiting == 5).await;
        for _ in 0..5 {
            stage.theirs.latch("l").count_down().await.unwrap();
        }
        while let Some(opened) = waiting.join_next().await {
            assert!(opened.unwrap());
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_count_down() {
    play(async |stage| {
        let latch = stage.ours.latch("l");
        for count in [1, 2, 10] {
            assert!(latch.arm(count).await.unwrap());
            for left in (0..count).rev() {
                assert_eq!(latch.count_down().await.unwrap(), left);
            }
            assert_eq!(latch.count_down().await.unwrap(), 0, "never below zero");
            latch.wait().await.unwrap();
        }
        stage.ours.latch("unknown").wait().await.unwrap();
        assert_eq!(stage.ours.latch("unknown").count_down().await.unwrap(), 0);
        assert!(!stage.raw::<bool>(&["EXISTS", "l", "unknown"]).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_delete() {
    play(async |stage| {
        // As Java deletes one: those who wait find it open. In Java they wait on.
        stage.ours.latch("l").arm(1).await.unwrap();
        let latch = stage.ours.latch("l");
        let waiting = spawn(async move { latch.wait().await.unwrap() });
        stage.heard_by(CHANNEL, 1).await;
        assert_eq!(stage.raw::<u32>(&["DEL", "l"]).await, 1);
        assert_eq!(stage.raw::<u32>(&["PUBLISH", CHANNEL, "1"]).await, 1);
        waiting.await.unwrap();
        assert!(stage.ours.latch("l").arm(3).await.unwrap());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_try_set_count() {
    play(async |stage| {
        assert!(stage.ours.latch("l").arm(1).await.unwrap());
        assert!(!stage.theirs.latch("l").arm(2).await.unwrap());
        assert_eq!(stage.theirs.latch("l").count().await.unwrap(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_count() {
    play(async |stage| assert_eq!(stage.ours.latch("l").count().await.unwrap(), 0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_single_count_down_await_single_instance() {
    play(async |stage| {
        stage.theirs.latch("l").arm(1).await.unwrap();
        let mut waiting = JoinSet::new();
        for _ in 0..24 {
            let latch = stage.ours.latch("l");
            waiting.spawn(async move { latch.wait().await.unwrap() });
        }
        eventually(async || stage.ours.stats().waiting == 24).await;
        stage.theirs.latch("l").count_down().await.unwrap();
        while let Some(opened) = waiting.join_next().await {
            opened.unwrap();
        }
        assert_eq!(stage.ours.latch("l").count().await.unwrap(), 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_on_zero_message_all_listeners_executed() {
    play(async |stage| {
        // One message, on one connection, and everybody who waits behind it goes on.
        stage.raw::<()>(&["SET", "l", "1"]).await;
        let mut waiting = JoinSet::new();
        for _ in 0..10 {
            let latch = stage.ours.latch("l");
            waiting.spawn(async move { latch.wait().await.unwrap() });
        }
        eventually(async || stage.ours.stats().waiting == 10).await;
        stage.heard_by(CHANNEL, 1).await;
        stage.raw::<u32>(&["DEL", "l"]).await;
        assert_eq!(stage.raw::<u32>(&["PUBLISH", CHANNEL, "0"]).await, 1);
        while let Some(opened) = waiting.join_next().await {
            opened.unwrap();
        }
    })
    .await;
}
