//! Confirmation by replicas: what counts is what they have, also where an answer was lost or they are slow.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

mod common;

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use common::{spawn, spec};
use futures_util::future::join_all;
use leasehold_core::{
    Client, ErrorKind,
    backend::{Attempt, Backend, CellWrite, Claim, ClaimSpec, Expect, Mode, Renew, Shape},
};
use leasehold_redis::{Redis, RedisConfig};
use leasehold_testkit::{
    faultline::{Faultline, Speech},
    servers::{
        redis::{Brand, Replicated, Setup},
        start_or_skip,
    },
};

/// A primary with one replica behind a faultline, and a store that asks the replica to confirm.
async fn set(brand: Brand) -> Option<(Replicated, Faultline, Redis)> {
    set_with(brand, "replica_timeout=250ms&command_timeout=500ms").await
}

async fn set_with(brand: Brand, options: &str) -> Option<(Replicated, Faultline, Redis)> {
    let servers = start_or_skip(|| Replicated::start_as(1, &Setup::new().with_brand(brand)))?;
    let line = Faultline::before(servers.primary().address(), Speech::Resp).unwrap();
    let url = format!("redis+replicas://{}?wait_replicas=1&{options}", line.address());
    let store = Redis::open(RedisConfig::from_url(&url).unwrap()).await.unwrap();
    Some((servers, line, store))
}

/// A claim that was granted: a replica that has just been started, or was paused, may need a moment to confirm.
async fn granted(store: &Redis, spec: &Arc<ClaimSpec>) -> Box<dyn Claim> {
    for _ in 0..100 {
        let mut claim = store.claim(spec.clone());
        if matches!(claim.attempt().await, Ok(Attempt::Granted(_))) {
            return claim;
        }
    }
    panic!("no replica confirms");
}

/// Tries again until the replica confirms; meanwhile nobody else has the name.
async fn granted_again(claim: &mut dyn Claim) {
    for _ in 0..100 {
        match claim.attempt().await {
            Ok(Attempt::Granted(_)) => return,
            Ok(Attempt::Busy(busy)) => panic!("nobody holds it: {busy:?}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
    }
    panic!("no replica confirms");
}

/// On a new connection newer servers confirm at once whatever it has not written itself. What is taken back because of
/// that may be asked for again: only the end of the claim keeps the request whose answer was lost from doing anything.
#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_is_found_again_on_a_new_connection_is_not_confirmed_by_that() {
    let two = NonZeroU32::new(2).unwrap();
    let (take, of) = (NonZeroU32::MIN, two);
    for brand in Brand::to_test() {
        let Some((servers, line, store)) = set(brand).await else { return };
        for (name, mode, shape) in [
            ("lock", Mode::Exclusive, Shape::Lock),
            ("write", Mode::Exclusive, Shape::ReadWrite),
            ("plain", Mode::Exclusive, Shape::Plain),
            ("read", Mode::Shared, Shape::ReadWrite),
            ("permits", Mode::Permits { take, of }, Shape::Lock),
            ("counting", Mode::Permits { take, of }, Shape::Counting),
        ] {
            // Scripts are loaded, and the replica keeps up.
            let mut claim = granted(&store, &spec(name, mode, shape)).await;
            drop(claim.release().await.unwrap());
            servers.members()[1].pause().unwrap();
            let hit = line.swallow_reply(b"EVALSHA", 1);
            let mut claim = store.claim(spec(name, mode, shape));
            let lost = claim.attempt().await.unwrap_err();
            assert_eq!((lost.kind(), hit.times()), (ErrorKind::Indeterminate, 1), "{brand:?} {name}");
            let error = claim.attempt().await.expect_err("no replica has it");
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{brand:?} {name}: {error}");
            servers.members()[1].resume().unwrap();
            servers.await_settled().unwrap();
            granted_again(&mut *claim).await;
            drop(claim.release().await.unwrap());
            let barrier = format!("leasehold_late:{{{name}}}");
            assert_eq!(servers.primary().command(&["EXISTS", &barrier]).unwrap(), ":1", "{brand:?} {name}");
        }
    }
}

/// It may still arrive, and would take away whatever the same claim wins after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_grant_may_be_taken_back_late_wins_nothing_more() {
    let Some((servers, line, store)) = set(Brand::Redis).await else { return };
    drop(granted(&store, &spec("a", Mode::Exclusive, Shape::Lock)).await.release().await.unwrap());
    servers.members()[1].pause().unwrap();
    let mut claim = store.claim(spec("a", Mode::Exclusive, Shape::Lock));
    // Of the two scripts only the one that gives back tells anybody.
    let held = line.hold_request(b"PUBLISH");
    let error = claim.attempt().await.expect_err("no replica has it");
    held.caught().await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    servers.members()[1].resume().unwrap();
    servers.await_settled().unwrap();
    let error = claim.attempt().await.expect_err("it is about to be taken away");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    drop(claim.release().await.unwrap());
    held.deliver();
    let mut next = granted(&store, &spec("a", Mode::Exclusive, Shape::Lock)).await;
    drop(next.release().await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_on_a_new_connection_that_has_nothing_to_lengthen_is_not_confirmed_by_that() {
    for brand in Brand::to_test() {
        let Some((servers, line, store)) = set(brand).await else { return };
        let asked = spec("a", Mode::Exclusive, Shape::Lock);
        let _claim = granted(&store, &asked).await;
        let renew = |seconds| {
            let (key, id, mode) = (asked.key.clone(), asked.id, asked.mode);
            [Renew { key, id, mode, ttl: Duration::from_secs(seconds) }]
        };
        assert!(store.renew(&renew(30)).await[0].is_ok(), "{brand:?}: scripts are loaded");
        servers.members()[1].pause().unwrap();
        let longer = store.renew(&renew(90)).await.remove(0).unwrap_err();
        assert_eq!(longer.kind(), ErrorKind::Unavailable, "{brand:?}");
        line.cut();
        for _ in 0..2 {
            assert!(store.renew(&renew(30)).await[0].is_err(), "{brand:?}: no replica has the longer lease");
        }
        servers.members()[1].resume().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cell_that_no_replica_has_is_not_taken_for_written() {
    for brand in Brand::to_test() {
        let Some((servers, _line, store)) = set(brand).await else { return };
        drop(granted(&store, &spec("a", Mode::Exclusive, Shape::Lock)).await.release().await.unwrap());
        servers.members()[1].pause().unwrap();
        let error = store.write_cell("cell", Expect::Absent, b"1", None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Indeterminate, "{brand:?}: {error}");
        assert!(error.to_string().contains("0 of 1 replicas"), "{brand:?}: {error}");
        let conflict = store.write_cell("cell", Expect::Absent, b"2", None).await.unwrap();
        assert_eq!(conflict, CellWrite::Conflict, "{brand:?}: it is there all the same");
        servers.members()[1].resume().unwrap();
    }
}

/// Everything behind a `WAIT` waits for it. So there is one of them at a time, for all that came meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn many_who_are_not_confirmed_are_all_told_so_in_time() {
    let Some((servers, _line, store)) = set(Brand::Redis).await else { return };
    drop(granted(&store, &spec("a", Mode::Exclusive, Shape::Lock)).await.release().await.unwrap());
    let client = Client::new(store);
    servers.members()[1].pause().unwrap();
    let tasks = (0..24).map(|number| {
        let lock = client.lock(&format!("job-{number}"));
        spawn(async move {
            tokio::time::sleep(Duration::from_millis(number * 7)).await;
            lock.try_acquire().await.map(drop).unwrap_err()
        })
    });
    for error in join_all(tasks).await {
        let error = error.unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
    servers.members()[1].resume().unwrap();
}

/// The first of them finds nothing under way, and the second comes while it waits.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_are_not_confirmed_the_second_does_not_wait_behind_the_first() {
    let options = "replica_timeout=3s&command_timeout=2s";
    let Some((servers, _line, store)) = set_with(Brand::Redis, options).await else { return };
    drop(granted(&store, &spec("a", Mode::Exclusive, Shape::Lock)).await.release().await.unwrap());
    servers.members()[1].pause().unwrap();
    let tries = ["first", "second"].map(|name| {
        let mut claim = store.claim(spec(name, Mode::Exclusive, Shape::Lock));
        async move { claim.attempt().await.expect_err("no replica has it") }
    });
    for error in join_all(tries).await {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
    servers.members()[1].resume().unwrap();
}
