//! What a store holds ends with its session, where that is asked for.

use std::time::Duration;

use leasehold_core::{
    ErrorKind,
    backend::{Backend as _, Recorded},
};
use leasehold_sql::MySql;
use leasehold_testkit::servers::{mysql as servers_of, start_or_skip};
use mysql_async::{Conn, prelude::Queryable as _};

use super::{Place, open};
use crate::common::{claim, key, lose, win, wins_eventually};

async fn in_session(place: &Place) -> Recorded<MySql> {
    open(&format!("{}?session=10s", place.url())).await.unwrap()
}

/// The lease is an hour; nobody waits for its end.
#[tokio::test]
async fn who_dies_is_noticed_at_once() {
    let place = Place::new().await;
    let (dying, other) = (in_session(&place).await, in_session(&place).await);
    let grant = win(&mut claim(&dying, "name")).await;
    assert!(grant.granted <= Duration::from_secs(10), "{grant:?}");
    lose(&mut claim(&other, "name")).await;
    assert!(other.inspect(&key("name")).await.unwrap().is_some());
    drop(dying);
    assert!(wins_eventually(&other, "name").await.fence > grant.fence);
}

/// Locks of sessions are each server's own: a replica would find everybody dead. On a server of its own, since it concerns
/// all of it; root may write all the same.
#[tokio::test]
async fn a_server_that_became_a_replica_is_not_asked_who_lives() {
    let Some(server) = start_or_skip(|| servers_of::MySql::start(servers_of::Brand::to_test())) else {
        return;
    };
    let mut root = Conn::from_url(server.url("mysql")).await.unwrap();
    let url = format!("{}?session=10s", server.url("mysql"));
    let (holder, asking) = (open(&url).await.unwrap(), open(&server.url("mysql")).await.unwrap());
    win(&mut claim(&holder, "name")).await;
    root.query_drop("SET GLOBAL read_only = ON").await.unwrap();
    let error = claim(&asking, "name").attempt().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("replica"), "{error}");
    assert_eq!(open(&url).await.unwrap_err().kind(), ErrorKind::Unavailable, "nobody begins a session there");
    root.query_drop("SET GLOBAL read_only = OFF").await.unwrap();
    lose(&mut claim(&asking, "name")).await;
}
