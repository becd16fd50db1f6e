//! The fenced lock: one count of tokens for both.

use std::time::Duration;

use crate::stage::{LEASE, ROUNDS, Stage, java, wait};

const CHANNEL: &str = "redisson_lock__channel:{z}";

sentences! {
    tokens_grow_from_side_to_side
    a_token_is_handed_over_with_the_lock
}

async fn tokens_grow_from_side_to_side(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").fenced("z"), stage.rust.lock("z").fenced());
    let mut last = 0;
    for _ in 0..ROUNDS {
        let token = java(theirs.lock_and_get_token()).await;
        assert!(token > last, "{token} after {last}");
        assert!(ours.try_acquire().await.unwrap().is_none());
        java(theirs.unlock()).await;

        let guard = ours.acquire().await.unwrap();
        assert!(guard.fence() > token, "{} after {token}", guard.fence());
        last = guard.fence();
        assert_eq!(java(theirs.token()).await, last);
        assert_eq!(java(theirs.try_lock_and_get_token(Duration::ZERO, LEASE)).await, None);
        guard.release().await.unwrap();
    }
}

async fn a_token_is_handed_over_with_the_lock(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").fenced("z"), stage.rust.lock("z").fenced().ttl(LEASE));
    for _ in 0..ROUNDS {
        let guard = ours.acquire().await.unwrap();
        let waiting = theirs.lock_and_get_token();
        stage.heard(CHANNEL).await;
        let before = guard.fence();
        guard.release().await.unwrap();
        let token = java(waiting).await;
        assert!(token > before);
        stage.silence().await;

        let waiting = wait(&ours);
        stage.heard(CHANNEL).await;
        java(theirs.unlock()).await;
        let guard = waiting.await.unwrap();
        assert!(guard.fence() > token);
        guard.release().await.unwrap();
        stage.silence().await;
    }
}
