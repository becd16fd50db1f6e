//! What a lock costs, as the server's own log tells it.

use std::fmt::Write as _;

use leasehold_core::backend::Release;
use leasehold_testkit::herd::Herd;
use mysql_async::{Conn, prelude::Queryable as _};
use tokio::sync::Mutex;

use super::Place;
use crate::{
    common::{LEFT, claim, leave_rows, lose, win},
    servers::eventually,
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
    // To take it is a request of two statements: one writes, one shows the row. MariaDB's log has it whole, MySQL's each of the
    // two. To give it back is one statement.
    let version: Option<String> = plain.query_first("SELECT VERSION()").await.unwrap();
    let lines = if version.unwrap().contains("MariaDB") { 1 } else { 2 };
    // A name that never was, and one that somebody else used before.
    for round in 1..=2 {
        let store = place.open().await;
        let mut one = claim(&store, &name);
        let before = requests(&mut plain, &name).await.len();
        win(&mut one).await;
        let acquired = requests(&mut plain, &name).await;
        assert_eq!(acquired.len() - before, lines, "to acquire, round {round}: {acquired:#?}");
        assert_eq!(one.release().await.unwrap(), Release::Released);
        let released = requests(&mut plain, &name).await;
        assert_eq!(released.len() - before, lines + 1, "and to release, round {round}: {released:#?}");
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
    let herd = Herd::default();
    let each = herd.requests_per_release(&one, &name, async || true, async || counted(&name).await).await;
    assert!(each <= 12.0, "{each}");
    let several = futures_util::future::join_all((0..10).map(|_| place.client())).await;
    let name = format!("herds-of-{}", place.database);
    let each = herd.requests_per_release(&several, &name, async || true, async || counted(&name).await).await;
    // A few looks of each head, and nothing of those behind it.
    assert!(each <= 50.0, "{each}");
    // In line each looks for itself, the less often the further behind.
    let (name, two) = (format!("line-of-{}", place.database), [place.client().await, place.client().await]);
    let standing = async || {
        let state = two[0].inspect(&name).await.unwrap();
        state.is_some_and(|state| state.waiters.len() == LINE.waiters)
    };
    let each = LINE.requests_per_release(&two, &name, standing, async || counted(&name).await).await;
    assert!(each <= 100.0, "{each}");
}

/// Fewer than wait outside of a line: every one of them rewrites the row to stand in it.
const LINE: Herd = Herd { waiters: 100, releases: 50, fair: true };

/// What others left behind, whether they gave it back or died, is removed when a store is opened. What is held stays, and
/// what somebody's transaction has locked is left to the next without waiting for it.
#[tokio::test]
async fn rows_nobody_uses_are_removed_and_fences_go_on() {
    let place = Place::new().await;
    let (store, mut plain) = (place.open().await, place.plain().await);
    let last = leave_rows(&store).await;
    let mut held = claim(&store, "held");
    win(&mut held).await;
    // As if it had been an hour ago, and a lease; it is due at the end of some ten minutes after that.
    plain
        .query_drop(
            "UPDATE leasehold_record SET due = due - 3600000000 - 600000000 - 60000000 WHERE name <> 'held'",
        )
        .await
        .unwrap();
    assert_eq!(plain.affected_rows(), u64::from(LEFT) + 1);
    let mut other = place.plain().await;
    other.query_drop("START TRANSACTION").await.unwrap();
    other.query_drop("SELECT 1 FROM leasehold_record WHERE name = 'left7' FOR UPDATE").await.unwrap();
    let store = place.open().await;
    let plain = Mutex::new(plain);
    let left = async || {
        let names: Vec<String> =
            plain.lock().await.query("SELECT name FROM leasehold_record ORDER BY name").await.unwrap();
        names == ["held", "left7"]
    };
    eventually(left).await;
    lose(&mut claim(&store, "held")).await;
    let fence = win(&mut claim(&store, "left0")).await.fence;
    assert!(fence > last, "{fence} after {last}");
}
