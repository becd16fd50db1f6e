//! What a store holds ends with its session, where that is asked for.

use std::{sync::Arc, time::Duration};

use leasehold_core::{
    ErrorKind,
    backend::{Attempt, Backend as _, Mode, Recorded, Renew, Renewal},
};
use leasehold_sql::Postgres;
use leasehold_testkit::servers::{postgres as servers_of, start_or_skip};

use super::{Place, connect, open};
use crate::{
    common::{LONG, claim, key, lose, spec, win, wins_eventually},
    servers::eventually,
};

async fn in_session(place: &Place) -> Recorded<Postgres> {
    open(&format!("{}?session=10s", place.url())).await.unwrap()
}

/// The lease is an hour; nobody waits for its end.
#[tokio::test]
async fn who_dies_is_noticed_at_once() {
    let place = Place::new().await;
    let (dying, other) = (in_session(&place).await, in_session(&place).await);
    let plain = place.open().await;
    let fence = win(&mut claim(&dying, "name")).await.fence;
    lose(&mut claim(&other, "name")).await;
    assert!(other.inspect(&key("name")).await.unwrap().is_some());
    drop(dying);
    let next = wins_eventually(&other, "name").await;
    assert!(next.fence > fence);
    drop(other);
    // Those without a session of their own can tell as well.
    assert!(wins_eventually(&plain, "name").await.fence > next.fence);
}

/// Whoever is cut off stops believing before the server gives up its session.
#[tokio::test]
async fn a_grant_is_no_longer_than_the_session_surely_lasts() {
    let place = Place::new().await;
    let store = in_session(&place).await;
    let grant = win(&mut claim(&store, "name")).await;
    assert!(grant.granted <= Duration::from_secs(10), "{grant:?}");
    // What is to outlive the process goes by its lease alone.
    let mut detached = spec("ticket", LONG);
    detached.life = leasehold_core::backend::Life::Detached;
    assert!(win(&mut store.claim(Arc::new(detached))).await.granted > LONG / 2);
}

/// Ends the oldest session.
const END: &str = "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND datname = current_database() ORDER BY backend_start LIMIT 1";

/// The next session takes it over by writing the row, so whoever found the old one dead does not get on.
#[tokio::test]
async fn what_nobody_took_while_the_session_was_lost_is_ours_again() {
    let place = Place::new().await;
    let (store, plain) = (in_session(&place).await, place.plain().await);
    let held = Arc::new(spec("name", LONG));
    let Attempt::Granted(grant) = store.claim(held.clone()).attempt().await.unwrap() else { panic!("busy") };
    let row = async || {
        let row = plain.query_one("SELECT version, record FROM leasehold_record", &[]).await.unwrap();
        (row.get::<_, i64>(0), row.get::<_, String>(1))
    };
    let (version, record) = row().await;
    assert!(plain.query_one(END, &[]).await.unwrap().get::<_, bool>(0));
    let again = async || match store.claim(held.clone()).attempt().await {
        Ok(Attempt::Granted(again)) => again.fence == grant.fence && row().await.0 > version,
        _ => false,
    };
    eventually(again).await;
    assert_ne!(row().await.1, record, "it bears the new session's id");
    lose(&mut claim(&in_session(&place).await, "name")).await;
}

/// Operators end what is idle; a session is idle between two signs of life.
#[tokio::test]
async fn a_session_outlasts_the_time_that_idle_connections_are_given() {
    let place = Place::new().await;
    let plain = place.plain().await;
    let alter = format!("ALTER DATABASE {} SET idle_session_timeout = '300ms'", place.database);
    plain.batch_execute(&alter).await.unwrap();
    let store = in_session(&place).await;
    win(&mut claim(&store, "name")).await;
    let process = "SELECT pid FROM pg_locks WHERE locktype = 'advisory'
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let ours: i32 = plain.query_one(process, &[]).await.unwrap().get(0);
    let others = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'leasehold'
                  AND datname = current_database() AND pid <> $1";
    eventually(async || plain.query_one(others, &[&ours]).await.unwrap().get::<_, i64>(0) == 0).await;
    assert_eq!(plain.query_one(process, &[]).await.unwrap().get::<_, i32>(0), ours);
}

#[tokio::test]
async fn a_session_that_an_operator_ends_is_lost_and_the_holder_hears_of_it() {
    let place = Place::new().await;
    let (first, other, plain) = (in_session(&place).await, in_session(&place).await, place.plain().await);
    let held = Arc::new(spec("name", LONG));
    let Attempt::Granted(grant) = first.claim(held.clone()).attempt().await.unwrap() else { panic!("busy") };
    // The first one's: it is the older.
    assert!(plain.query_one(END, &[]).await.unwrap().get::<_, bool>(0));
    let next = wins_eventually(&other, "name").await;
    assert!(next.fence > grant.fence);
    let renew = Renew { key: key("name"), id: held.id, mode: Mode::Exclusive, ttl: LONG };
    eventually(async || match first.renew(std::slice::from_ref(&renew)).await.remove(0) {
        Ok(renewal) => renewal == Renewal::Lost(None),
        Err(error) => {
            // Until another session has begun nothing is known of what the old one had.
            assert!(matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Indeterminate), "{error}");
            false
        }
    })
    .await;
    // The session is taken up again.
    wins_eventually(&first, "new").await;
}

/// Both would have the lock, and it would stay with the pooler's connection for good.
#[tokio::test]
async fn a_pooler_that_lends_sessions_is_refused() {
    let Some(server) = start_or_skip(servers_of::Postgres::start) else { return };
    let Some(pooler) = start_or_skip(|| servers_of::Pooler::start(&server)) else { return };
    let error = open(&format!("{}?session=10s", pooler.url("postgres"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains("pooler"), "{error}");
    let plain = connect(&server.url("postgres")).await;
    let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
    assert_eq!(plain.query_one(locks, &[]).await.unwrap().get::<_, i64>(0), 0, "nothing is left there");
    open(&format!("{}?session=10s", server.url("postgres"))).await.unwrap();
}
