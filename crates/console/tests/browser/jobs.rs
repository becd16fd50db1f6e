//! Jobs on the page: how they went, what they do, and pausing them from there.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use leasehold::{Client, Job, Slot};
use serde_json::json;

use crate::{
    acts::{gives_token, may_go},
    driver::{Browser, DESK, PHONE, Shape},
    stage::{Stage, Store, eventually},
};

const WHY: &str = "the disk is full";

/// Runs it now, once; the work says how it went.
async fn runs(job: &Job, went: Result<(), &str>) {
    let turn = job.run_once(async |_| went.map_err(Box::<dyn std::error::Error>::from)).await;
    assert_eq!(turn.is_ok(), went.is_ok());
}

/// Jobs in every state: one that waits, one that runs, one that rests, one that is paused.
pub(crate) async fn fleet(stage: &mut Stage) {
    let (batch, web) =
        (stage.store.client("report.sh", "batch-1").await, stage.store.client("reindex", "web-2").await);
    let nightly = batch.job("nightly").at_most("2h");
    for went in [Ok(()), Err("exit code 1: no space left on device, and nobody who would make some"), Ok(())]
    {
        runs(&nightly, went).await;
    }
    runs(&nightly.schedule("0 2 * * *").zone("Europe/Berlin"), Ok(())).await;
    runs(&web.job("rollup").at_most("1m").at_least("1h"), Ok(())).await;
    let mailing = batch.job("mailing").at_most("1m");
    runs(&mailing, Ok(())).await;
    mailing.pause_as("anna (operator from 10.0.0.3)", "the printer is on fire").await.unwrap();
    let (reindex, observer) = (web.job("reindex").at_most("1h"), web.clone());
    stage.beside(async move {
        let _never = reindex.run_once(async |_| std::future::pending::<leasehold::Result<()>>().await).await;
    });
    eventually(async || {
        observer.job("reindex").state().await.unwrap().is_some_and(|job| job.running.is_some())
    })
    .await;
}

/// A job that runs every second and fails every other time.
fn ticks(stage: &mut Stage, client: &Client) -> Job {
    let job = client.job("tick").schedule("* * * * * *").at_most("1m");
    let (running, turn) = (job.clone(), AtomicUsize::new(0));
    stage.beside(async move {
        let work = async move |_: &leasehold::Run| {
            if turn.fetch_add(1, Relaxed).is_multiple_of(2) { Ok(()) } else { Err("no space left") }
        };
        running.run(work).await.unwrap();
    });
    job
}

async fn last_run(job: &Job) -> Option<Slot> {
    job.state().await.unwrap().and_then(|job| Some(job.runs.iter().rfind(|run| run.start.is_some())?.slot))
}

/// What the page says of runs, of a job that rests, and of what it missed.
struct Words {
    done: &'static str,
    failed: &'static str,
    paused: &'static str,
    missed: &'static str,
}

const ENGLISH: Words =
    Words { done: "done", failed: "failed", paused: "Paused", missed: "are not made up for" };
const CHINESE: Words =
    Words {
        done: "完成", failed: "失败", paused: "已暂停", missed: "暂停期间的时间点记为错过，不会补做"
    };

async fn is_paused_and_resumed(store: Store, shape: Shape, suffix: &str) {
    let words = if shape.language == "zh-CN" { CHINESE } else { ENGLISH };
    let mut stage = Stage::open(store).await;
    let Some(browser) = Browser::open(shape, &stage.home()).await else { return };
    let client = stage.store.client("report.sh", "batch-1").await;
    let job = ticks(&mut stage, &client);
    let picture = |what: &str| format!("{}-job-{what}{suffix}", stage.store.name());
    browser.goes("#/jobs").await;
    for text in [words.done, words.failed, "no space left", "batch-1"] {
        browser.reads(".runs", text).await;
    }
    browser.pictures(&picture("ran")).await;
    browser.presses(".job .pause").await;
    gives_token(&browser, &stage.token).await;
    browser.sees("#field-reason").await;
    assert!(!may_go(&browser).await, "no reason was given");
    browser.types("#field-reason", WHY).await;
    browser.types("#field-by", "anna").await;
    browser.pictures(&picture("pause")).await;
    browser.presses("dialog button[type=submit]").await;
    browser.reads(".job-paused", WHY).await;
    browser.reads(".job-paused", "anna (operator from 127.0.0.1)").await;
    browser.sees(".job[data-state=paused]").await;
    browser.reads(".job .mark", words.paused).await;
    browser.pictures(&picture("paused")).await;
    let paused = job.state().await.unwrap().unwrap();
    assert_eq!(paused.paused.unwrap().why, WHY);
    let before = last_run(&job).await;
    browser.presses(".job .resume").await;
    browser.reads("dialog", words.missed).await;
    browser.presses("dialog button[type=submit]").await;
    browser.until("return document.querySelector('.job-paused') === null").await;
    browser.sees(".job .pause").await;
    eventually(async || last_run(&job).await > before).await;
    browser.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_in_memory_is_paused_and_resumed_from_the_page() {
    is_paused_and_resumed(Store::memory(), DESK, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_on_redis_is_paused_and_resumed_in_chinese() {
    let Some(redis) = Store::redis() else { return };
    is_paused_and_resumed(redis, Shape { language: "zh-CN", ..DESK }, "-zh").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_on_redis_is_paused_and_resumed_from_a_phone() {
    let Some(redis) = Store::redis() else { return };
    is_paused_and_resumed(redis, Shape { dark: true, ..PHONE }, "-phone-dark").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_without_jobs_says_how_to_get_one() {
    let stage = Stage::open(Store::memory()).await;
    let Some(browser) = Browser::open(DESK, &stage.home()).await else { return };
    browser.goes("#/jobs").await;
    browser
        .reads(".empty code", "leasehold cron nightly --schedule \"0 2 * * *\" --at-most 2h -- ./report.sh")
        .await;
    browser.pictures("memory-jobs-empty").await;
    browser.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_job_shows_its_state_in_a_word_and_when_it_runs() {
    let mut stage = Stage::open(Store::memory()).await;
    fleet(&mut stage).await;
    let Some(browser) = Browser::open(DESK, &stage.home()).await else { return };
    browser.goes("#/jobs").await;
    browser.reads(".job", "nightly").await;
    let states = "return Object.fromEntries([...document.querySelectorAll('.job')].map((one) => [one.querySelector('h2').innerText, one.querySelector('.mark').innerText]))";
    let expected =
        json!({ "nightly": "Waiting", "rollup": "Resting", "mailing": "Paused", "reindex": "Running" });
    assert_eq!(browser.asks(states).await, expected);
    for text in ["0 2 * * *", "Europe/Berlin"] {
        browser.reads(".job .facts", text).await;
    }
    let next =
        stage.store.client("x", "y").await.job("nightly").state().await.unwrap().unwrap().next.unwrap();
    browser.sees(&format!(".job .facts time[datetime=\"{next}\"][title]")).await;
    browser.reads(".job .facts time", "in ").await;
    assert_eq!(
        browser.asks("return document.querySelector('.job h2 a').getAttribute('href')").await,
        "#/locks/mailing"
    );
    browser.closes().await;
}
