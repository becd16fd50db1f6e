//! What is counted: on the overview and for Prometheus.

use std::collections::BTreeSet;

use leasehold::ErrorKind;
use leasehold_testkit::scripted::{Fault, Script, Verb};
use serde_json::{Value, json};

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
    for line in ["lock_backend_up 1", "lock_held 0", "lock_acquired_total 1", "lock_expired_total 0"] {
        assert!(metrics.body.lines().any(|found| found == line), "{line}: {}", metrics.body);
    }
    for line in metrics.body.lines().filter(|line| !line.starts_with('#')) {
        line.split_once(' ').unwrap().1.parse::<f64>().unwrap();
    }
    assert_eq!(served.get("/readyz").await.status, 200);
}

/// What Prometheus reads once it is as it should be.
async fn scraped(served: &Served, is_so: impl Fn(&str) -> bool) -> String {
    let asking = async {
        loop {
            let text = served.get("/metrics").await.body;
            if is_so(&text) {
                return text;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LIMIT, asking).await.expect("it comes to be so")
}

/// What is written behind a name with its labels.
fn written<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
}

fn number(text: &str, name: &str) -> Option<f64> {
    written(text, name).map(|number| number.parse().unwrap())
}

/// How often something was asked of the store.
fn asked(text: &str, op: &str) -> u64 {
    let count = written(text, &format!("lock_backend_seconds_count{{op=\"{op}\"}}"));
    count.unwrap_or_else(|| panic!("{op}: {text}")).parse().unwrap()
}

/// The words of the label `op`, as they are documented.
fn documented_ops() -> Vec<&'static str> {
    let mut rows =
        include_str!("../../API.md").lines().filter(|row| row.starts_with("| `lock_backend_seconds`"));
    let words = rows.next().unwrap().split('|').nth(2).unwrap().split('`');
    words.skip(1).step_by(2).skip(1).collect()
}

#[tokio::test]
async fn whatever_is_asked_of_the_store_is_timed() {
    let served = Served::start().await;
    let text = scraped(&served, |text| asked(text, "list") > 0).await;
    let counts = text.lines().filter_map(|line| line.strip_prefix("lock_backend_seconds_count{op=\""));
    let told: Vec<&str> = counts.filter_map(|line| line.split('"').next()).collect();
    assert_eq!(told, documented_ops());

    let leadership = served.client.election("scheduler").campaign("here").await.unwrap();
    let taken = served.post("/api/v1/locks/x/acquire", "{}").await.json();
    let bearing = json!({ "ticket": taken["ticket"] }).to_string();
    let stuck = served.client.lock("stuck").acquire().await.unwrap();
    let id = stuck.id();
    for (op, method, path, body) in [
        ("list", "GET", "/api/v1/locks", String::new()),
        ("inspect", "GET", "/api/v1/locks/x", String::new()),
        ("history", "GET", "/api/v1/locks/x", String::new()),
        ("renew", "POST", "/api/v1/locks/x/renew", bearing.clone()),
        ("release", "POST", "/api/v1/locks/x/release", bearing),
        ("acquire", "POST", "/api/v1/locks/y/acquire", "{}".to_owned()),
        ("break", "POST", "/api/v1/locks/stuck/break", json!({ "id": id, "reason": "stuck" }).to_string()),
        ("audit", "GET", "/api/v1/audit", String::new()),
        ("pause", "POST", "/api/v1/jobs/nightly/pause", json!({ "reason": "the disk is full" }).to_string()),
        ("resume", "POST", "/api/v1/jobs/nightly/resume", "{}".to_owned()),
        ("job", "POST", "/api/v1/jobs/nightly/resume", "{}".to_owned()),
        ("jobs", "GET", "/api/v1/jobs", String::new()),
        ("elections", "GET", "/api/v1/elections", String::new()),
        ("leader", "GET", "/api/v1/elections", String::new()),
        ("examine", "GET", "/api/v1/store", String::new()),
    ] {
        let before = asked(&served.get("/metrics").await.body, op);
        let answer = if method == "GET" { served.get(path).await } else { served.post(path, &body).await };
        assert_eq!(answer.status, 200, "{op}: {answer:?}");
        let after = served.get("/metrics").await.body;
        assert!(asked(&after, op) > before, "{op}: {after}");
    }
    drop((leadership, stuck));
}

#[tokio::test]
async fn a_request_that_waits_for_others_says_nothing_of_the_store() {
    let served = Served::start().await;
    let _held = served.client.lock("x").acquire().await.unwrap();
    let acquired = async || asked(&served.get("/metrics").await.body, "acquire");
    assert_eq!(served.post("/api/v1/locks/x/acquire", r#"{"wait":50}"#).await.status, 423);
    assert_eq!(acquired().await, 0);
    assert_eq!(served.post("/api/v1/locks/x/acquire", "{}").await.status, 423);
    assert_eq!(acquired().await, 1);
}

#[tokio::test]
async fn while_the_store_is_away_nobody_is_told_how_it_stands() {
    let script = Script::new();
    let served = Served::scripted(&script).await;
    let _held = served.client.lock("x").acquire().await.unwrap();
    let standing = [
        "lock_names",
        "lock_held",
        "lock_holders{kind=\"exclusive\"}",
        "lock_waiters",
        "lock_expiring",
        "lock_longest_wait_seconds",
        "lock_longest_hold_seconds",
    ];
    let is_told = |text: &str| standing.map(|name| number(text, name).is_some());
    let text = scraped(&served, |text| number(text, "lock_held") == Some(1.0)).await;
    assert_eq!(is_told(&text), [true; 7], "{text}");
    script.always(Verb::List, Fault::Err(ErrorKind::Unavailable));
    let text = scraped(&served, |text| number(text, "lock_backend_up") == Some(0.0)).await;
    assert_eq!(is_told(&text), [false; 7], "{text}");
    assert!(!text.contains("lock_longest"), "not even that there is such a number: {text}");
    let age = number(&text, "lock_sweep_age_seconds").unwrap();
    let older = scraped(&served, |text| number(text, "lock_sweep_age_seconds").unwrap() > age).await;
    assert_eq!(is_told(&older), [false; 7], "{older}");
    script.heal();
    let text = scraped(&served, |text| number(text, "lock_backend_up") == Some(1.0)).await;
    assert_eq!(is_told(&text), [true; 7], "{text}");
}

#[tokio::test]
async fn one_prometheus_may_read_a_console_and_programs_that_lock() {
    let served = Served::start().await;
    let text = served.get("/metrics").await.body;
    let rows = include_str!("../../../leasehold/src/lib.rs").lines();
    let library = rows.filter_map(|row| row.strip_prefix("//! | `lock_")?.split('`').next());
    let library: Vec<String> = library.map(|name| format!("lock_{name}")).collect();
    assert!(library.contains(&"lock_lost_total".to_owned()), "{library:?}");
    for name in library {
        let line = format!("# TYPE {name} ");
        assert!(!text.contains(&line), "{name} is what a program tells of itself: {text}");
    }
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
        let is_some = |name: &str| number(text, name).is_some_and(|number| number > 0.0);
        let kinds = ["exclusive", "shared", "permits"]
            .map(|kind| number(text, &format!("lock_holders{{kind=\"{kind}\"}}")));
        number(text, "lock_waiters") == Some(1.0)
            && kinds == [Some(1.0), Some(2.0), Some(1.0)]
            && is_some("lock_longest_wait_seconds")
            && is_some("lock_longest_hold_seconds")
            && is_some("lock_sweeps_total{outcome=\"seen\"}")
            && is_some("lock_backend_seconds_count{op=\"list\"}")
    };
    let text = scraped(&served, seen).await;
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
