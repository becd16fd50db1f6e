//! The rate limiter: what one side sets the other keeps to, and what one side takes the other misses.

use std::{collections::BTreeMap, time::Duration};

use leasehold_core::{ErrorKind, backend::Share};

use crate::stage::{LEASE, Stage, java};

/// An interval short enough to wait for.
const SOON: Duration = Duration::from_millis(200);

sentences! {
    what_java_set_rust_takes_from
    what_rust_set_java_takes_from
    the_keys_are_the_same_byte_for_byte
    permits_come_back_to_both_sides
    a_rust_that_waits_in_vain_is_told_so_at_once
    each_client_of_either_side_has_a_share_of_its_own
    a_rate_set_anew_by_either_side_is_the_others_too
    what_rust_removes_java_no_longer_has
    what_rust_keeps_for_a_while_goes_as_a_whole
}

async fn what_java_set_rust_takes_from(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").limiter("r"), stage.rust.rate_limiter("r"));
    assert_eq!(ours.try_acquire(1).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert!(java(theirs.try_set_rate(6, LEASE)).await);
    assert!(!ours.try_set_rate(9, "1s").await.unwrap());
    let rate = ours.rate().await.unwrap().unwrap();
    assert_eq!((rate.permits, rate.per, rate.share, rate.keep), (6, LEASE, Share::All, None));
    assert!(ours.try_acquire(2).await.unwrap());
    assert_eq!(java(theirs.available()).await, 4);
    assert!(java(theirs.try_acquire(3)).await);
    assert_eq!(ours.available().await.unwrap(), 1);
    assert!(!ours.try_acquire(2).await.unwrap() && !java(theirs.try_acquire(2)).await);
    assert!(ours.try_acquire(1).await.unwrap() && !java(theirs.try_acquire(1)).await);
    assert_eq!(ours.try_acquire(7).await.unwrap_err().kind(), ErrorKind::Conflict);
}

async fn what_rust_set_java_takes_from(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").limiter("r"), stage.rust.rate_limiter("r"));
    assert!(ours.try_set_rate(4, LEASE).await.unwrap());
    assert!(!java(theirs.try_set_rate(9, LEASE)).await);
    assert!(java(theirs.try_acquire(3)).await && !java(theirs.try_acquire(2)).await);
    assert!(!ours.try_acquire(2).await.unwrap() && ours.try_acquire(1).await.unwrap());
    assert_eq!((java(theirs.available()).await, ours.available().await.unwrap()), (0, 0));
    assert!(!java(theirs.try_acquire(1)).await);
}

async fn the_keys_are_the_same_byte_for_byte(stage: &mut Stage) {
    let fields = async |name: &str| -> BTreeMap<String, String> {
        let mut fields: BTreeMap<String, String> = stage.redis.raw(&["HGETALL", name]).await;
        // Only newer releases have it, and the others do not mind.
        fields.entry("keepAliveTime".into()).or_insert_with(|| "0".into());
        fields
    };
    let takings = async |name: &str| -> Vec<Vec<u8>> {
        stage.redis.raw(&["ZRANGE", &format!("{name}:permits"), "0", "-1"]).await
    };
    for (theirs, ours, tag) in [("r", "o", "{r}"), ("x{r}", "x{o}", "x{r}")] {
        let limiter = stage.java.thread("t1").limiter(theirs);
        assert!(java(limiter.try_set_rate(70_000, LEASE)).await && java(limiter.try_acquire(66_051)).await);
        let mirror = stage.rust.rate_limiter(ours);
        mirror.set_rate(70_000, LEASE).await.unwrap();
        mirror.acquire(66_051).await.unwrap();
        assert_eq!(fields(theirs).await, fields(ours).await);
        let mirrored = tag.replace('r', "o");
        for tag in [tag, &mirrored] {
            assert_eq!(stage.redis.raw::<u32>(&["GET", &format!("{tag}:value")]).await, 3949);
            let taken = takings(tag).await;
            assert_eq!((taken.len(), taken[0].len(), taken[0][0]), (1, 21, 16), "{taken:?}");
            assert_eq!(taken[0][17..], 66_051_u32.to_le_bytes());
        }
        // The same members with the other side's, and each counts both.
        assert!(stage.rust.rate_limiter(theirs).try_acquire(900).await.unwrap());
        assert!(java(stage.java.thread("t1").limiter(ours).try_acquire(900)).await);
        assert_eq!(java(limiter.available()).await, 3049);
        assert_eq!(mirror.available().await.unwrap(), 3049);
    }
}

async fn permits_come_back_to_both_sides(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").limiter("r"), stage.rust.rate_limiter("r"));
    assert!(java(theirs.try_set_rate(1, SOON)).await);
    let time = async || {
        let time: (u64, u64) = stage.redis.raw(&["TIME"]).await;
        Duration::from_micros(time.0 * 1_000_000 + time.1)
    };
    let start = time().await;
    for _ in 0..3 {
        java(theirs.acquire(1)).await;
        ours.acquire(1).await.unwrap();
    }
    let passed = time().await.saturating_sub(start);
    // Java's part is on another clock than the server's; on one machine they are the same, but for the grain.
    assert!(passed + Duration::from_millis(10) >= 5 * SOON, "six in {passed:?}");
}

async fn a_rust_that_waits_in_vain_is_told_so_at_once(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").limiter("r"), stage.rust.rate_limiter("r").wait("5m"));
    assert!(java(theirs.try_set_rate(3, LEASE)).await && java(theirs.try_acquire(3)).await);
    let error = ours.acquire(1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    let after = error.busy().unwrap().retry_after.unwrap();
    assert!(after > LEASE / 2 && after <= LEASE, "{after:?}");
}

async fn each_client_of_either_side_has_a_share_of_its_own(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").limiter("r"), stage.rust.rate_limiter("r"));
    assert!(java(theirs.try_set_rate_per_client(2, LEASE)).await);
    assert_eq!(ours.rate().await.unwrap().unwrap().share, Share::Each);
    assert!(java(theirs.try_acquire(2)).await && !java(theirs.try_acquire(1)).await);
    assert!(ours.try_acquire(2).await.unwrap() && !ours.try_acquire(1).await.unwrap());
    let own = format!("{{r}}:permits:{}", stage.rust.who().client);
    assert_eq!(stage.redis.raw::<u32>(&["ZCARD", &own]).await, 1);
    assert!(stage.redis.raw::<i64>(&["PTTL", &own]).await > 0, "ours goes when it counts no more");
    // And the other way round.
    stage.rust.rate_limiter("o").per_client().set_rate(1, LEASE).await.unwrap();
    let theirs = stage.java.thread("t1").limiter("o");
    assert!(java(theirs.try_acquire(1)).await && !java(theirs.try_acquire(1)).await);
    assert!(stage.rust.rate_limiter("o").try_acquire(1).await.unwrap());
}

async fn a_rate_set_anew_by_either_side_is_the_others_too(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").limiter("r"), stage.rust.rate_limiter("r"));
    java(theirs.set_rate(2, LEASE)).await;
    assert!(ours.try_acquire(2).await.unwrap());
    java(theirs.set_rate(5, LEASE)).await;
    assert!(ours.try_acquire(4).await.unwrap() && !ours.try_acquire(2).await.unwrap());
    ours.set_rate(3, LEASE).await.unwrap();
    assert_eq!(java(theirs.available()).await, 3);
    assert!(java(theirs.try_acquire(3)).await && !java(theirs.try_acquire(1)).await);
}

async fn what_rust_removes_java_no_longer_has(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").limiter("r"), stage.rust.rate_limiter("r"));
    assert!(java(theirs.try_set_rate(2, LEASE)).await && java(theirs.try_acquire(2)).await);
    assert!(ours.remove().await.unwrap());
    assert!(theirs.try_acquire(1).await.unwrap_err().to_string().contains("not initialized"));
    let left = stage.redis.keys().await;
    assert!(left.iter().all(|key| !key.starts_with("{r}") && key != "r"), "{left:?}");
    assert!(java(theirs.try_set_rate(2, LEASE)).await && java(theirs.try_acquire(2)).await);
}

async fn what_rust_keeps_for_a_while_goes_as_a_whole(stage: &mut Stage) {
    let theirs = stage.java.thread("t1").limiter("r");
    stage.rust.rate_limiter("r").keep(LEASE).set_rate(2, "1s").await.unwrap();
    assert!(java(theirs.try_acquire(1)).await);
    for key in ["r", "{r}:value", "{r}:permits"] {
        let left: i64 = stage.redis.raw(&["PTTL", key]).await;
        assert!(left > 0, "{key}: {left}");
    }
}
