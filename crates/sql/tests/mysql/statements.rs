//! What a lock costs, as the server's own log tells it.

use std::fmt::Write as _;

use leasehold_core::backend::Release;
use mysql_async::{Conn, prelude::Queryable as _};
use tokio::sync::Mutex;

use super::Place;
use crate::{
    common::{claim, win},
    servers::requests_per_release,
};

/// What the server was asked about this name, in its own words.
async fn requests(plain: &mut Conn, name: &str) -> Vec<String> {
    let mut hex = String::new();
    name.bytes().for_each(|byte| write!(hex, "{byte:02X}").unwrap());
    let asked = format!(
        "SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log
         WHERE command_type = 'Query' AND CONVERT(argument USING utf8mb4) LIKE '%{hex}%'
         AND CONVERT(argument USING utf8mb4) NOT LIKE '%general_log%'"
    );
    plain.query(asked).await.unwrap()
}

/// A plain connection to a server that writes down what it is asked.
async fn logging(place: &Place) -> Conn {
    let mut plain = place.plain().await;
    plain.query_drop("SET GLOBAL log_output = 'TABLE'").await.unwrap();
    plain.query_drop("SET GLOBAL general_log = ON").await.unwrap();
    plain
}

#[tokio::test]
async fn an_uncontended_lock_is_one_request_each_way() {
    let place = Place::new().await;
    let mut plain = logging(&place).await;
    let name = format!("cost-of-{}", place.database);
    // A name that never was, and one that somebody else used before.
    for round in 1..=2 {
        let store = place.open().await;
        let mut one = claim(&store, &name);
        let before = requests(&mut plain, &name).await.len();
        win(&mut one).await;
        let acquired = requests(&mut plain, &name).await;
        assert_eq!(acquired.len() - before, 1, "to acquire, round {round}: {acquired:#?}");
        assert_eq!(one.release().await.unwrap(), Release::Released);
        let released = requests(&mut plain, &name).await;
        assert_eq!(released.len() - before, 2, "and to release, round {round}: {released:#?}");
    }
}

/// Within one client the head of the line alone asks, and the one who releases rings it. Among several, each has a head
/// that looks for itself now and then.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_among_five_hundred_waiters_costs_a_few_requests() {
    let place = Place::new().await;
    let plain = Mutex::new(logging(&place).await);
    let name = format!("herd-of-{}", place.database);
    let counted = async |name: &str| {
        let asked = requests(&mut *plain.lock().await, name).await;
        u32::try_from(asked.len()).unwrap()
    };
    let one = [place.client().await];
    let each = requests_per_release(&one, &name, async || true, async || counted(&name).await).await;
    assert!(each <= 12.0, "{each}");
    let several = futures_util::future::join_all((0..10).map(|_| place.client())).await;
    let name = format!("herds-of-{}", place.database);
    let each = requests_per_release(&several, &name, async || true, async || counted(&name).await).await;
    // A few looks of each head, and nothing of those behind it.
    assert!(each <= 50.0, "{each}");
}
