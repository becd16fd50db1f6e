//! What a store holds ends with its session, where that is asked for.

use std::time::Duration;

use leasehold_core::backend::{Backend as _, Recorded};
use leasehold_sql::MySql;

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
