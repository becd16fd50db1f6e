//! Jobs over HTTP: how they went, and pausing them.

use leasehold::{Client, Error, Job, Turn};
use serde_json::{Value, json};

use crate::{
    api::until,
    client::{LIMIT, OPERATOR, Served, VIEWER},
};

const HEADERS: [&str; 2] = ["X-Leasehold: 1", "Content-Type: application/json"];

fn job(client: &Client, name: &str) -> Job {
    client.job(name).at_most("1m")
}

/// Runs it now; the work says how it went.
async fn runs(job: &Job, went: Result<(), &str>) {
    let failed = |why: &str| std::io::Error::other(why.to_owned());
    let turn =
        job.run_once(async |_| went.map_err(|why| Box::<dyn std::error::Error>::from(failed(why)))).await;
    assert_eq!(turn.is_ok(), went.is_ok());
}

async fn only_job(served: &Served) -> Value {
    served.get("/api/v1/jobs").await.json()["jobs"][0].clone()
}

#[tokio::test]
async fn jobs_are_told_with_how_they_went() {
    let served = Served::start().await;
    let nightly = job(&served.client, "nightly");
    runs(&nightly, Ok(())).await;
    runs(&nightly, Err("the disk is full")).await;
    let told = only_job(&served).await;
    assert_eq!(
        (&told["name"], &told["state"], &told["paused"]),
        (&"nightly".into(), &"waiting".into(), &Value::Null)
    );
    assert_eq!(told["totals"], json!({ "done": 1, "failed": 1, "lost": 0, "died": 0, "missed": 0 }));
    let (first, second) = (&told["runs"][0], &told["runs"][1]);
    assert_eq!((&first["outcome"], &first["fence_text"]), (&"done".into(), &"1".into()));
    assert_eq!((&second["outcome"], &second["why"]), (&"failed".into(), &"the disk is full".into()));
    assert_eq!(second["program"], *served.client.who().program);
    assert!(second["took_ms"].is_u64() && second["started"].is_string(), "{second}");
}

#[tokio::test]
async fn jobs_come_in_pages() {
    let served = Served::start().await;
    for name in ["a", "b", "c"] {
        job(&served.client, name).pause("later").await.unwrap();
    }
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = served.get(&format!("/api/v1/jobs?limit=2&cursor={cursor}")).await.json();
        let jobs = page["jobs"].as_array().unwrap();
        assert!(jobs.len() <= 2);
        names.extend(jobs.iter().map(|job| job["name"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        cursor = crate::api::encoded(next);
    }
    names.sort();
    assert_eq!(names, ["a", "b", "c"]);
    for wrong in ["limit=0", "limit=201", "limit=x"] {
        assert_eq!(served.get(&format!("/api/v1/jobs?{wrong}")).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn a_job_whose_process_is_gone_does_not_run() {
    let served = Served::start().await;
    let other = served.other();
    let nightly = job(&other, "nightly");
    let mut work = Box::pin(nightly.run_once(async |_| std::future::pending::<Result<(), Error>>().await));
    let running = until(&served, "/api/v1/jobs", |jobs| jobs["jobs"][0]["state"] == "running");
    let running = tokio::select! {
        turn = &mut work => panic!("it ends never: {turn:?}"),
        running = running => running,
    };
    assert_eq!(running["jobs"][0]["running"]["host"], *other.who().host);
    drop(work);
    let dead = until(&served, "/api/v1/jobs", |jobs| jobs["jobs"][0]["state"] != "running").await;
    assert_eq!(
        (&dead["jobs"][0]["runs"][0]["outcome"], &dead["jobs"][0]["running"]),
        (&"died".into(), &Value::Null)
    );
}

#[tokio::test]
async fn a_job_is_paused_in_the_operators_name_and_resumed() {
    let served = Served::start().await;
    let nightly = job(&served.client, "nightly");
    let body = json!({ "reason": " the disk is full ", "by": "anna" }).to_string();
    let paused = served.post("/api/v1/jobs/nightly/pause", &body).await;
    assert_eq!(paused.status, 200, "{paused:?}");
    let paused = paused.json();
    assert_eq!((&paused["before"], &paused["job"]["state"]), (&Value::Null, &"paused".into()));
    let told = only_job(&served).await["paused"].clone();
    assert_eq!(
        (&told["by"], &told["why"]),
        (&"anna (operator from 127.0.0.1)".into(), &"the disk is full".into())
    );
    let turn = nightly.run_once(async |_| Ok::<_, Error>(())).await.unwrap();
    assert!(matches!(turn, Turn::Paused(_)), "{turn:?}");

    let resumed = served.post("/api/v1/jobs/nightly/resume", r#"{"by":"anna"}"#).await.json();
    assert_eq!((&resumed["before"], &resumed["job"]["state"]), (&told, &"waiting".into()));
    let audit = served.get("/api/v1/audit").await.json();
    let mut acts: Vec<_> =
        audit["entries"].as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    acts.sort_by_key(ToString::to_string);
    assert_eq!(acts, [&Value::from("pause"), &Value::from("resume")], "who did it stays: {audit}");
    assert_eq!(audit["entries"][0]["by"], "anna (operator from 127.0.0.1)");
    let again = served.post("/api/v1/jobs/nightly/resume", "{}").await.json();
    assert_eq!((&again["before"], &again["job"]["paused"]), (&Value::Null, &Value::Null));
    runs(&nightly, Ok(())).await;
    assert_eq!(only_job(&served).await["totals"]["done"], 1);
}

#[tokio::test]
async fn a_job_of_any_name_is_paused() {
    let served = Served::start().await;
    for name in ["a/b", "..", "锁 ?&#"] {
        let path = format!("/api/v1/jobs/-/pause?name={}", crate::api::encoded(name));
        let paused = served.post(&path, r#"{"reason":"why not"}"#).await.json();
        assert_eq!(paused["job"]["name"], name);
        assert_eq!(paused["job"]["paused"]["by"], "somebody (operator from 127.0.0.1)");
    }
}

#[tokio::test]
async fn a_pause_without_a_reason_is_none() {
    let served = Served::start().await;
    for wrong in [
        json!({}),
        json!({ "reason": " " }),
        json!({ "reason": "x".repeat(501) }),
        json!({ "reason": "r", "by": "x".repeat(101) }),
        json!({ "reason": "r", "until": "noon" }),
    ] {
        assert_eq!(served.post("/api/v1/jobs/x/pause", &wrong.to_string()).await.status, 400, "{wrong}");
    }
    for wrong in [json!([]), json!({ "reason": "r" }), json!({ "by": "x".repeat(101) })] {
        assert_eq!(served.post("/api/v1/jobs/x/resume", &wrong.to_string()).await.status, 400, "{wrong}");
    }
    assert_eq!(served.get("/api/v1/jobs").await.json()["jobs"], json!([]));
}

#[tokio::test]
async fn whoever_is_no_operator_neither_pauses_nor_resumes() {
    let served = Served::start().await;
    job(&served.client, "resting").pause("later").await.unwrap();
    let refusals =
        [(None, 401), (Some("a-token-of-nobody"), 401), (Some(VIEWER), 403), (Some(OPERATOR), 200)];
    for (token, status) in refusals {
        let token = token.map(|token| format!("Authorization: Bearer {token}"));
        let headers: Vec<&str> = token.as_deref().into_iter().chain(HEADERS).collect();
        for (path, body) in [("nightly/pause", r#"{"reason":"no"}"#), ("resting/resume", "{}")] {
            let answer = served.ask("POST", &format!("/api/v1/jobs/{path}"), &headers, body).await;
            assert_eq!(answer.status, status, "{path} {token:?}");
        }
        let paused = async |name| {
            served.client.job(name).state().await.unwrap().is_some_and(|job| job.paused.is_some())
        };
        let seen = tokio::time::timeout(LIMIT, async { (paused("nightly").await, paused("resting").await) });
        assert_eq!(seen.await.unwrap(), (status == 200, status != 200), "{token:?}");
    }
}
