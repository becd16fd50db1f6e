//! Several locks as one: Redisson's multi-lock and our set of locks.

use crate::stage::{LEASE, Stage, java, wait};

sentences! {
    what_java_takes_together_rust_finds_taken
    what_rust_takes_together_java_finds_taken
}

async fn what_java_takes_together_rust_finds_taken(stage: &mut Stage) {
    let theirs = stage.java.thread("t1").multi(&["a", "b", "c"]);
    assert!(java(theirs.try_lock_for(LEASE, LEASE)).await);
    for name in ["a", "b", "c"] {
        assert!(stage.rust.lock(name).try_acquire().await.unwrap().is_none());
    }
    assert!(stage.rust.set().lock("x").lock("b").try_acquire().await.unwrap().is_none());
    assert!(stage.holders("x").await.is_empty());
    let waiting = wait(&stage.rust.lock("b"));
    stage.heard("redisson_lock__channel:{b}").await;
    java(theirs.unlock()).await;
    waiting.await.unwrap().release().await.unwrap();
    stage.rust.set().lock("a").lock("b").lock("c").acquire().await.unwrap().release().await.unwrap();
}

async fn what_rust_takes_together_java_finds_taken(stage: &mut Stage) {
    let set = stage.rust.set().lock("a").lock("b").ttl(LEASE);
    let guard = set.acquire().await.unwrap();
    let (one, both) = (stage.java.thread("t1").lock("b"), stage.java.thread("t2").multi(&["a", "b"]));
    assert!(!java(one.try_lock()).await);
    assert!(!java(both.try_lock()).await);
    let waiting = one.lock_for(LEASE);
    stage.heard("redisson_lock__channel:{b}").await;
    guard.release().await.unwrap();
    java(waiting).await;
    java(one.unlock()).await;
}
