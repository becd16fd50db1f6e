//! What the routes promise, asked for over HTTP.

use std::fmt::Write as _;

use leasehold::backend::Loss;
use serde_json::{Value, json};

use crate::client::{LIMIT, Served};

/// A text that any part of a URL can carry.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "%{byte:02X}");
        out
    })
}

/// Asks until the answer is as it should be.
pub(crate) async fn until(served: &Served, path: &str, is: impl Fn(&Value) -> bool) -> Value {
    let asking = async {
        loop {
            let answer = served.get(path).await.json();
            if is(&answer) {
                return answer;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let answer = tokio::time::timeout(LIMIT, asking).await;
    answer.unwrap_or_else(|_| panic!("{path} never was as it should be"))
}

#[tokio::test]
async fn a_lock_is_taken_renewed_and_released_over_http() {
    let served = Served::start().await;
    let taken =
        served.post("/api/v1/locks/deploy/acquire", r#"{"ttl":"60s","label":"from a script"}"#).await.json();
    assert_eq!(
        (&taken["name"], &taken["ttl_ms"], &taken["fence"]),
        (&"deploy".into(), &60_000.into(), &1.into())
    );
    assert!(taken["expires_in_ms"].as_u64().unwrap() <= 60_000);

    let busy = served.post("/api/v1/locks/deploy/acquire", "{}").await;
    assert_eq!((busy.status, busy.header("content-type")), (423, Some("application/problem+json")));
    let busy = busy.json();
    assert_eq!((&busy["kind"], &busy["holders"][0]["id"]), (&"busy".into(), &taken["id"]));
    assert_eq!(busy["holders"][0]["label"], "from a script");

    let ticket = json!({ "ticket": taken["ticket"], "ttl": 90_000 }).to_string();
    let renewed = served.post("/api/v1/locks/deploy/renew", &ticket).await;
    assert_eq!((renewed.status, &renewed.json()["expires_in_ms"]), (200, &90_000.into()));
    assert_eq!(served.post("/api/v1/locks/other/renew", &ticket).await.status, 409, "it is for another lock");

    let shorter = json!({ "ticket": taken["ticket"], "ttl": "1s" }).to_string();
    let left = served.post("/api/v1/locks/deploy/renew", &shorter).await.json()["expires_in_ms"].clone();
    assert!(left.as_u64().unwrap() > 60_000, "nothing shortens a lease: {left}");

    let ticket = json!({ "ticket": taken["ticket"] }).to_string();
    assert_eq!(served.post("/api/v1/locks/deploy/release", &ticket).await.status, 200);
    let free = served.get("/api/v1/locks/deploy").await.json();
    assert_eq!((&free["lock"]["state"], &free["lock"]["fence"]), (&"free".into(), &Value::Null), "{free}");
    let gone = served.post("/api/v1/locks/deploy/release", &ticket).await;
    assert_eq!((gone.status, &gone.json()["loss"]), (410, &"gone".into()));
    let again = served.post("/api/v1/locks/deploy/acquire", "{}").await.json();
    assert_eq!(again["fence"], 2);
}

#[tokio::test]
async fn a_ticket_written_by_hand_takes_no_lock_from_its_holder() {
    let served = Served::start().await;
    let guard = served.client.lock("deploy").acquire().await.unwrap();
    let other = served.post("/api/v1/locks/other/acquire", "{}").await.json();
    let seal = other["ticket"].as_str().unwrap().rsplit('/').next().unwrap();
    let by_hand = format!("lh1/{}/0/1/exclusive/deploy", guard.id());
    for ticket in [by_hand.clone(), format!("{by_hand}/"), format!("{by_hand}/{seal}")] {
        let body = json!({ "ticket": ticket }).to_string();
        for act in ["renew", "release"] {
            let answer = served.post(&format!("/api/v1/locks/deploy/{act}"), &body).await;
            assert_eq!((answer.status, &answer.json()["kind"]), (403, &"forbidden".into()), "{act} {ticket}");
        }
    }
    guard.extend("30s").await.unwrap();
    let rubbish = served.post("/api/v1/locks/deploy/release", r#"{"ticket":"rubbish"}"#).await;
    assert_eq!(rubbish.status, 400);
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let served = Served::start().await;
    let allowed = |answer: &super::client::Answer| answer.header("allow").map(str::to_owned);
    let written = served.post("/api/v1/locks", "{}").await;
    assert_eq!((written.status, allowed(&written)), (405, Some("get, head".to_owned())));
    let read = served.get("/api/v1/locks/a/break").await;
    assert_eq!((read.status, allowed(&read)), (405, Some("post".to_owned())));
}

#[tokio::test]
async fn a_request_that_waits_gets_the_lock_when_it_is_released() {
    let served = Served::start().await;
    let guard = served.client.lock("x").acquire().await.unwrap();
    let waiting = served.post("/api/v1/locks/x/acquire", r#"{"wait":"60s"}"#);
    let releasing = async {
        let queued = async {
            while served.client.stats().waiting == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LIMIT, queued).await.expect("the request waits");
        guard.release().await.unwrap();
    };
    let (answer, ()) = tokio::join!(waiting, releasing);
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[tokio::test]
async fn semaphores_and_shared_locks_are_had_over_http_too() {
    let served = Served::start().await;
    for _ in 0..2 {
        let permits = r#"{"permits":{"take":1,"of":2}}"#;
        assert_eq!(served.post("/api/v1/locks/pool/acquire", permits).await.status, 200);
        assert_eq!(served.post("/api/v1/locks/doc/acquire", r#"{"mode":"shared"}"#).await.status, 200);
    }
    assert_eq!(
        served.post("/api/v1/locks/pool/acquire", r#"{"permits":{"take":1,"of":2}}"#).await.status,
        423
    );
    assert_eq!(served.post("/api/v1/locks/doc/acquire", r#"{"mode":"exclusive"}"#).await.status, 423);
    assert_eq!(
        served.post("/api/v1/locks/pool/acquire", "{}").await.status,
        409,
        "it is in use as a semaphore"
    );
    let pool = served.get("/api/v1/locks/pool").await.json();
    assert_eq!((&pool["lock"]["kind"], &pool["lock"]["permits"]), (&"semaphore".into(), &2.into()));
    assert_eq!(pool["lock"]["holders"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn names_hold_anything() {
    let served = Served::start().await;
    let names = ["a/b", "<img src=x onerror=alert(1)>", "100%", "..", ".", "锁 ?&#", "a+b"];
    for name in names {
        let guard = served.client.lock(name).acquire().await.unwrap();
        let encoded = encoded(name);
        for path in [format!("/api/v1/locks/{encoded}"), format!("/api/v1/locks/-?name={encoded}")] {
            let shown = served.get(&path).await.json();
            assert_eq!(shown["lock"]["name"], name, "{path}");
            assert_eq!(shown["lock"]["holders"][0]["id"], guard.id().to_string());
        }
        guard.release().await.unwrap();
    }
    assert_eq!(served.get("/api/v1/locks/%FF").await.status, 400);
    assert_eq!(served.get("/api/v1/locks/-?name=").await.status, 400);
}

#[tokio::test]
async fn a_break_takes_exactly_that_hold_and_is_kept() {
    let served = Served::start().await;
    let guard = served.client.lock("stuck").ttl("1s").label("nightly").acquire().await.unwrap();
    let (id, fence) = (guard.id().to_string(), guard.fence());
    let body = json!({ "id": id, "reason": "stuck since noon", "by": "anna" }).to_string();
    for wrong in [
        json!({ "id": id }),
        json!({ "id": id, "reason": " " }),
        json!({ "id": "x", "reason": "r" }),
        json!({ "id": id, "reason": "x".repeat(501) }),
    ] {
        assert_eq!(served.post("/api/v1/locks/stuck/break", &wrong.to_string()).await.status, 400);
    }
    let done = served.post("/api/v1/locks/stuck/break", &body).await;
    assert_eq!((done.status, &done.json()["broken"]), (200, &true.into()), "{done:?}");
    assert_eq!(done.json()["note"], Value::Null, "the audit has it");
    let metrics = served.get("/metrics").await.body;
    assert!(metrics.contains("\nlock_forced_total 1\n"), "before any look could see it: {metrics}");
    let loss = tokio::time::timeout(LIMIT, guard.lost()).await.expect("the holder learns of it");
    let Loss::Broken(broken) = loss else { panic!("{loss:?}") };
    assert_eq!((&*broken.by, &*broken.why), ("anna (operator from 127.0.0.1)", "stuck since noon"));

    let next = served.client.lock("stuck").acquire().await.unwrap();
    let stale = served.post("/api/v1/locks/stuck/break", &body).await;
    assert_eq!((stale.status, &stale.json()["kind"]), (409, &"changed_hands".into()));
    assert_eq!(stale.json()["lock"]["holders"][0]["id"], next.id().to_string());
    next.check().expect("the next holder is left alone");

    let audit = served.get("/api/v1/audit").await.json();
    let entries = audit["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "{audit}");
    assert_eq!(
        (&entries[0]["name"], &entries[0]["id"], &entries[0]["fence"]),
        (&"stuck".into(), &id.into(), &fence.into())
    );
    assert_eq!(
        (&entries[0]["reason"], &entries[0]["holder"]["label"]),
        (&"stuck since noon".into(), &"nightly".into())
    );
}

#[tokio::test]
async fn a_break_is_counted_once_though_it_is_seen_later_too() {
    let served = Served::start().await;
    let guard = served.client.lock("stuck").acquire().await.unwrap();
    until(&served, "/api/v1/overview", |seen| seen["counts"]["held"] == 1).await;
    let body = json!({ "id": guard.id().to_string(), "reason": "stuck" }).to_string();
    assert_eq!(served.post("/api/v1/locks/stuck/break", &body).await.status, 200);
    let seen = until(&served, "/api/v1/overview", |seen| seen["counts"]["held"] == 0).await;
    assert_eq!(seen["counts"]["broken"], 1, "{seen}");
    assert!(served.get("/metrics").await.body.contains("\nlock_forced_total 1\n"));
}

#[tokio::test]
async fn a_lock_taken_over_http_is_in_the_history_when_it_is_broken() {
    let served = Served::start().await;
    let taken = served.post("/api/v1/locks/stuck/acquire", r#"{"label":"from a script"}"#).await.json();
    let body = json!({ "id": taken["id"], "reason": "gone since noon" }).to_string();
    assert_eq!(served.post("/api/v1/locks/stuck/break", &body).await.status, 200);
    let past = served.get("/api/v1/locks/stuck").await.json()["history"].clone();
    assert_eq!((&past[0]["id"], &past[0]["how"]), (&taken["id"], &"broken".into()), "{past}");
    assert_eq!((&past[0]["label"], &past[0]["why"]), (&"from a script".into(), &"gone since noon".into()));
}

#[tokio::test]
async fn a_length_that_is_none_is_explained() {
    let served = Served::start().await;
    for body in [r#"{"ttl":1.5}"#, r#"{"ttl":true}"#, r#"{"wait":-1}"#] {
        let answer = served.post("/api/v1/locks/a/acquire", body).await;
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(answer.status == 400 && detail.contains("milliseconds"), "{body}: {detail}");
    }
}

#[tokio::test]
async fn the_table_is_read_page_by_page_and_filtered() {
    let served = Served::start().await;
    let mut guards = Vec::new();
    for number in 0..25 {
        let lock =
            served.client.lock(&format!("order:{number:02}")).label(if number == 7 { "Seven" } else { "x" });
        guards.push(lock.acquire().await.unwrap());
    }
    guards.push(served.client.lock("other").acquire().await.unwrap());
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = served.get(&format!("/api/v1/locks?prefix=order:&limit=10&cursor={cursor}")).await.json();
        let locks = page["locks"].as_array().unwrap();
        assert!(locks.len() <= 10);
        names.extend(locks.iter().map(|lock| lock["name"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        cursor = encoded(next);
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 25);
    let found = served.get("/api/v1/locks?q=sEvEn").await.json();
    assert_eq!(
        (found["locks"].as_array().unwrap().len(), &found["locks"][0]["name"]),
        (1, &"order:07".into())
    );
    let old = served.get("/api/v1/locks?held_over=1h").await.json();
    assert!(old["locks"].as_array().unwrap().is_empty());
    for wrong in ["limit=0", "limit=1001", "limit=x", "held_over=soon"] {
        assert_eq!(served.get(&format!("/api/v1/locks?{wrong}")).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn those_who_wait_for_each_other_are_a_circle() {
    let served = Served::start().await;
    let (one, other) = (served.client.clone(), served.other());
    let (a, b) = (one.lock("a").acquire().await.unwrap(), other.lock("b").acquire().await.unwrap());
    let (first, second) = (one.lock("b"), other.lock("a"));
    let stuck = async {
        let (first, second) = tokio::join!(first.acquire(), second.acquire());
        drop((first, second));
    };
    let looking = until(&served, "/api/v1/waits", |waits| {
        waits["cycles"].as_array().is_some_and(|all| !all.is_empty())
    });
    let waits = tokio::select! {
        () = stuck => panic!("nobody lets go"),
        waits = looking => waits,
    };
    assert_eq!(waits["cycles"][0]["names"], json!(["a", "b"]));
    assert_eq!(waits["cycles"][0]["owners"].as_array().unwrap().len(), 2);
    let edges = waits["edges"].as_array().unwrap();
    assert!(edges.len() == 2 && edges.iter().all(|edge| edge["cycle"] == true), "{waits}");
    assert_eq!(waits["owners"].as_object().unwrap().len(), 2);
    drop((a, b));
}

#[tokio::test]
async fn who_leads_is_shown_with_what_it_says() {
    let served = Served::start().await;
    let leadership = served.client.election("primary").campaign("10.0.0.7:9000").await.unwrap();
    let elections = served.get("/api/v1/elections").await.json();
    let election = &elections["elections"][0];
    assert_eq!((&election["name"], &election["value"]), (&"primary".into(), &"10.0.0.7:9000".into()));
    assert_eq!(election["leader"]["id"], leadership.guard().id().to_string());
}

#[tokio::test]
async fn the_store_says_what_its_locks_are_worth() {
    let served = Served::start().await;
    let store = until(&served, "/api/v1/store", |store| store["up"] == true).await;
    assert_eq!((&store["scheme"], &store["capabilities"]["shared"]), (&"memory".into(), &true.into()));
    assert_eq!(store["guarantee"]["level"], served.client.info().guarantee.level.to_string());
    assert_eq!(served.get("/api/v1/jobs").await.json()["jobs"], json!([]));
    let description = served.get("/api/v1/openapi.json").await.json();
    assert!(description["openapi"].as_str().unwrap().starts_with("3."));
}

#[tokio::test]
async fn one_lock_is_shown_with_its_line_of_code_and_its_history() {
    let served = Served::start().await;
    let guard = served.client.lock("x").acquire().await.unwrap();
    let line = line!() - 1;
    let shown = served.get("/api/v1/locks/x").await.json();
    let place = format!("{}:{line}", file!());
    assert_eq!(shown["lock"]["holders"][0]["location"], place);
    assert_eq!((&shown["cli"], &shown["history_note"]), (&"leasehold show -- 'x'".into(), &Value::Null));
    let id = guard.id().to_string();
    let _broken = served.client.break_hold("x", guard.id(), "enough").await.unwrap();
    guard.release().await.unwrap_err();
    let shown = until(&served, "/api/v1/locks/x", |shown| shown["history"][0]["id"] == id.as_str()).await;
    let past = &shown["history"][0];
    assert_eq!(
        (&past["how"], &past["why"], &past["location"]),
        (&"broken".into(), &"enough".into(), &place.into())
    );
    assert_eq!(shown["lock"]["state"], "free");
}

#[tokio::test]
async fn the_page_is_not_sent_twice() {
    let served = Served::start().await;
    let page = served.ask("GET", "/", &[], "").await;
    assert!(page.status == 200 && page.header("content-type").unwrap().starts_with("text/html"));
    let tag = page.header("etag").unwrap().to_owned();
    let again = served.ask("GET", "/", &[&format!("If-None-Match: {tag}")], "").await;
    assert_eq!((again.status, &*again.body), (304, ""));
    assert_eq!(served.ask("GET", "/", &["If-None-Match: \"other\""], "").await.status, 200);
    for path in ["/../Cargo.toml", "/%2e%2e/Cargo.toml", "/js/../../Cargo.toml", "//etc/passwd"] {
        assert_eq!(served.ask("GET", path, &[], "").await.status, 404, "{path}");
    }
    assert_eq!(served.ask("POST", "/", &["X-Leasehold: 1"], "").await.status, 401);
}
