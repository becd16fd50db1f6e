//! The count-down latch.

use crate::{
    common::spawn,
    stage::{ROUNDS, Stage, java},
};

const CHANNEL: &str = "redisson_countdownlatch__channel__{l}";

sentences! {
    what_java_armed_rust_counts_down
    what_rust_armed_java_counts_down
    both_count_the_same_latch
    arming_again_is_refused_on_both_sides
}

async fn what_java_armed_rust_counts_down(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").latch("l"), stage.rust.latch("l"));
    for _ in 0..ROUNDS {
        assert!(java(theirs.try_set_count(2)).await);
        assert_eq!(ours.count().await.unwrap(), 2);
        let mut waiting = theirs.wait();
        stage.heard(CHANNEL).await;
        assert_eq!(ours.count_down().await.unwrap(), 1);
        assert!(!waiting.is_done());
        assert_eq!(ours.count_down().await.unwrap(), 0);
        assert!(java(waiting).await);
        assert_eq!(java(theirs.count()).await, 0);
        stage.silence().await;
    }
}

async fn what_rust_armed_java_counts_down(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").latch("l"), stage.rust.latch("l"));
    for _ in 0..ROUNDS {
        assert!(ours.arm(2).await.unwrap());
        assert_eq!(java(theirs.count()).await, 2);
        let latch = ours.clone();
        let waiting = spawn(async move { latch.wait().await.unwrap() });
        stage.heard(CHANNEL).await;
        java(theirs.count_down()).await;
        assert_eq!(ours.count().await.unwrap(), 1);
        assert!(!waiting.is_finished());
        java(theirs.count_down()).await;
        waiting.await.unwrap();
        stage.silence().await;
    }
}

async fn both_count_the_same_latch(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").latch("l"), stage.rust.latch("l"));
    let latch = ours.clone();
    assert!(ours.arm(4).await.unwrap());
    let (waiting, also) = (spawn(async move { latch.wait().await.unwrap() }), theirs.wait());
    stage.heard_by(CHANNEL, 2).await;
    let other = stage.java.thread("t2").latch("l");
    for left in [2, 0] {
        java(other.count_down()).await;
        assert_eq!(ours.count_down().await.unwrap(), left);
    }
    waiting.await.unwrap();
    assert!(java(also).await);
    assert_eq!(ours.count_down().await.unwrap(), 0);
    java(other.count_down()).await;
    assert_eq!(ours.count().await.unwrap(), 0);
}

async fn arming_again_is_refused_on_both_sides(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").latch("l"), stage.rust.latch("l"));
    assert!(java(theirs.try_set_count(1)).await);
    assert!(!ours.arm(5).await.unwrap());
    assert_eq!(ours.count_down().await.unwrap(), 0);
    assert!(ours.arm(1).await.unwrap());
    assert!(!java(theirs.try_set_count(5)).await);
    java(theirs.count_down()).await;
    assert!(ours.wait_for("1s").await.unwrap());
}
