//! Connections that the network forgot: they stay open and say nothing, and no end ever tells of it. Keepalives are answered
//! by whoever stands in between, so only a question that is not answered tells.

use leasehold_core::Client;
use leasehold_testkit::faultline::{Faultline, Speech};

use super::{Place, open};
use crate::servers::eventually;

/// A client that reaches the server through this line.
async fn through(line: &Faultline, place: &Place, options: &str) -> Client {
    let url = place.url().replace(&place.server.address().to_string(), &line.address().to_string());
    Client::builder(open(&format!("{url}?command_timeout=1s{options}")).await.unwrap()).build()
}

fn line(place: &Place) -> Faultline {
    Faultline::before(place.server.address(), Speech::Pieces).unwrap()
}

/// The server's processes that listen here. Those of connections that were silenced are among them.
const LISTENING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND query = 'LISTEN leasehold'";

/// Without a sign of life it would listen to nothing until the system gives it up, hours later or never.
#[tokio::test]
async fn a_listener_that_falls_silent_is_replaced_and_the_waiter_gets_its_lock() {
    let place = Place::new().await;
    let (line, plain) = (line(&place), place.plain().await);
    let (holder, waiter) = (place.client().await, through(&line, &place, "").await);
    let held = holder.lock("name").acquire().await.unwrap();
    let waits = async { waiter.lock("name").acquire().await.unwrap() };
    let listening = async || plain.query_one(LISTENING, &[]).await.unwrap().get::<_, i64>(0);
    let cut = async {
        eventually(async || listening().await == 1).await;
        line.silence();
        eventually(async || listening().await == 2).await;
        let fence = held.fence();
        held.release().await.unwrap();
        fence
    };
    let (guard, fence) = tokio::join!(waits, cut);
    assert!(guard.fence() > fence);
    assert!(holder.lock("name").try_acquire().await.unwrap().is_none(), "it was given to one only");
    guard.release().await.unwrap();
}

/// The server still counts the old session among the living: it heard of no end. So does nobody else.
#[tokio::test]
async fn a_session_that_falls_silent_is_followed_by_another_and_nothing_is_granted_twice() {
    let place = Place::new().await;
    let (line, plain) = (line(&place), place.plain().await);
    let holder = through(&line, &place, "&session=3s").await;
    let other = Client::builder(open(&format!("{}?session=3s", place.url())).await.unwrap()).build();
    let guard = holder.lock("name").ttl("1h").acquire().await.unwrap();
    let sessions = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let sessions = async || plain.query_one(sessions, &[]).await.unwrap().get::<_, i64>(0);
    assert_eq!(sessions().await, 2);
    let fence = guard.fence();
    let waits = async {
        let next = other.lock("name").acquire().await.unwrap();
        // Whoever is let in was let in after the end, and by then the first has stopped believing.
        assert!(guard.check().is_err(), "both hold it");
        next
    };
    let cut = async {
        line.silence();
        // The old one, the next, and the other's.
        eventually(async || sessions().await == 3).await;
        // It works again, for what is asked from now on.
        holder.lock("new").acquire().await.unwrap().release().await.unwrap();
    };
    let ((), ended) = tokio::join!(cut, async {
        tokio::select! {
            next = waits => Some(next),
            _ = guard.lost() => None,
            () = eventually(async || sessions().await == 3) => None,
        }
    });
    // Whether it was kept or lost in the end: it is given up, and passes on.
    drop(ended);
    drop(guard);
    let next = other.lock("name").acquire().await.unwrap();
    assert!(next.fence() > fence);
}
