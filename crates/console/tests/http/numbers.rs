//! What is counted: on the overview and for Prometheus.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    api::until,
    client::{LIMIT, Served},
};

#[tokio::test]
async fn the_overview_counts_what_was_seen() {
    let served = Served::start().await;
    until(&served, "/api/v1/overview", |overview| overview["up"] == true).await;
    let guard = served.client.lock("x").acquire().await.unwrap();
    let seen = |overview: &Value| overview["counts"]["held"] == 1 && overview["counts"]["acquires"] == 1;
    let overview = until(&served, "/api/v1/overview", seen).await;
    assert_eq!(overview["longest_holds"][0]["name"], "x");
    assert!(!overview["series"]["points"].as_array().unwrap().is_empty());
    guard.release().await.unwrap();
    until(&served, "/api/v1/overview", |overview| overview["counts"]["held"] == 0).await;

    let metrics = served.get("/metrics").await;
    assert!(metrics.header("content-type").unwrap().starts_with("text/plain"));
    for line in ["lock_backend_up 1", "lock_held 0", "lock_acquired_total 1", "lock_lost_total 0"] {
        assert!(metrics.body.lines().any(|found| found == line), "{line}: {}", metrics.body);
    }
    for line in metrics.body.lines().filter(|line| !line.starts_with('#')) {
        line.split_once(' ').unwrap().1.parse::<f64>().unwrap();
    }
    assert_eq!(served.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn every_number_that_is_documented_is_told_and_no_other() {
    let served = Served::start().await;
    let _guards = [
        served.client.lock("secret-customer").acquire().await.unwrap(),
        served.client.rwlock("r").read().acquire().await.unwrap(),
        served.client.rwlock("r").read().acquire().await.unwrap(),
        served.client.semaphore("s", 2).acquire().await.unwrap(),
    ];
    let waiting = served.other().lock("secret-customer");
    let task = served.client.runtime().spawn(async move { drop(waiting.acquire().await) });
    let seen = |text: &str| {
        let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let is_some = |name: &str| number(name).is_some_and(|number| number != "0");
        let kinds = ["exclusive", "shared", "permits"]
            .map(|kind| number(&format!("lock_holders{{kind=\"{kind}\"}}")));
        number("lock_waiters") == Some("1")
            && kinds == [Some("1"), Some("2"), Some("1")]
            && is_some("lock_longest_wait_seconds")
            && is_some("lock_longest_hold_seconds")
            && is_some("lock_sweeps_total{outcome=\"seen\"}")
            && is_some("lock_backend_seconds{op=\"list\"}")
    };
    let asking = async {
        loop {
            let text = served.get("/metrics").await.body;
            if seen(&text) {
                return text;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let text = tokio::time::timeout(LIMIT, asking).await.expect("what is held and waited for is counted");
    task.abort();
    assert!(!text.contains("secret-customer"), "names are no labels: {text}");
    let told: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let rows = include_str!("../../API.md").lines().filter(|line| line.starts_with("| `lock_"));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    let documented: BTreeSet<&str> =
        cells.flat_map(|cell| cell.split('`')).filter(|word| word.starts_with("lock_")).collect();
    assert_eq!(told, documented);
}
