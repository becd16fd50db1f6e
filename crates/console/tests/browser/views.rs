//! What each view shows, in which language, colours and width.

use leasehold::backend::{CellWrite, Expect};
use serde_json::json;

use crate::{
    driver::{Browser, DESK, PHONE, Shape},
    jobs,
    stage::{Stage, Store, eventually, shop},
};

/// Each view and something that is read there.
const VIEWS: &[(&str, &str, &str)] = &[
    ("overview", "#/", "order:42"),
    ("locks", "#/locks", "nightly-report"),
    ("lock", "#/locks/order%3A42", "basket 7781"),
    ("waits", "#/waits", "account:7"),
    ("jobs", "#/jobs", "the printer is on fire"),
    ("elections", "#/elections", "10.0.0.7:9000"),
    ("audit", "#/audit", "the printer is on fire"),
    ("store", "#/store", "S1"),
];

/// What reaches beyond the right edge of the window (a phone would rather show a wider one, made smaller), but for what can be scrolled and what only ears are given.
const OVERFLOW: &str = "return [document.documentElement, ...document.querySelectorAll('main *')]
    .filter((one) => !one.closest('.graph-frame, .for-ears, thead') && one.getBoundingClientRect().right > WIDTH + 1)
    .map((one) => one.outerHTML.slice(0, 120))";

async fn tour(store: Store, shape: Shape, suffix: &str) {
    let mut stage = Stage::open(store).await;
    let _people = shop(&mut stage).await;
    jobs::fleet(&mut stage).await;
    let Some(browser) = Browser::open(shape, &stage.home()).await else { return };
    for (name, place, text) in VIEWS {
        browser.goes(place).await;
        browser.reads("main", text).await;
        browser.sees(".live[data-state=live]").await;
        let overflow = OVERFLOW.replace("WIDTH", &shape.width.to_string());
        assert_eq!(browser.asks(&overflow).await, json!([]), "{name} is wider than its window");
        browser.pictures(&format!("{}-{name}{suffix}", stage.store.name())).await;
    }
    browser.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_view_shows_what_is_in_memory() {
    tour(Store::memory(), DESK, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_view_shows_what_is_on_redis() {
    let Some(redis) = Store::redis() else { return };
    tour(redis, DESK, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_view_fits_a_phone_in_the_dark_in_chinese() {
    tour(Store::memory(), Shape { dark: true, language: "zh-CN", ..PHONE }, "-phone-dark-zh").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_view_of_redis_fits_a_phone_in_the_dark_in_chinese() {
    let Some(redis) = Store::redis() else { return };
    tour(redis, Shape { dark: true, language: "zh-CN", ..PHONE }, "-phone-dark-zh").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_view_is_readable_in_the_dark() {
    tour(Store::memory(), Shape { dark: true, ..DESK }, "-dark").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_tells_who_holds_it_who_waits_and_in_which_order() {
    let mut stage = Stage::open(Store::memory()).await;
    let _people = shop(&mut stage).await;
    let Some(browser) = Browser::open(DESK, &stage.home()).await else { return };
    browser.goes("#/locks/order%3A42").await;
    for text in ["checkout", "web-1", "basket 7781", "deploy"] {
        browser.reads(".holder", text).await;
    }
    let fence =
        stage.store.client("x", "y").await.inspect("order:42").await.unwrap().unwrap().holders[0].fence;
    browser.reads(".facts", &fence.to_string()).await;
    let line = browser
        .asks("return [...document.querySelectorAll('.line .program')].map((one) => one.textContent)")
        .await;
    assert_eq!(line, json!(["mailer", "reprice"]));
    browser.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_wait_in_a_circle_are_marked() {
    let mut stage = Stage::open(Store::memory()).await;
    let _people = shop(&mut stage).await;
    let Some(browser) = Browser::open(DESK, &stage.home()).await else { return };
    browser.goes("#/waits").await;
    browser.reads(".cycle", "account:7").await;
    browser.reads(".cycle", "account:9").await;
    let steps = "return [...document.querySelectorAll('.cycle li')].map((one) =>
        [one.querySelector('.program').textContent, one.querySelector('a').textContent].join(' wants ')).sort()";
    assert_eq!(browser.asks(steps).await, json!(["backup wants account:9", "mailer wants account:7"]));
    let marked = browser.asks("return document.querySelectorAll('path.edge.in-cycle').length").await;
    assert_eq!(marked, 2);
    let plain = browser.asks("return document.querySelectorAll('path.edge:not(.in-cycle)').length").await;
    assert!(plain.as_u64().unwrap() >= 2, "{plain}");
    let alarms = "return [...document.querySelectorAll('#room [role=alert]')].map((one) => one.textContent)";
    let alarms = browser.asks(alarms).await;
    let [alarm] = &alarms.as_array().unwrap()[..] else {
        panic!("one that stays when the rest is drawn anew: {alarms}")
    };
    let alarm = alarm.as_str().unwrap();
    assert!(alarm.contains("account:7") && alarm.contains("account:9"), "{alarm}");
    browser.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_break_that_may_have_failed_does_not_read_as_one() {
    let stage = Stage::open(Store::memory()).await;
    let client = stage.store.client("x", "y").await;
    let id = client.lock("order:9").acquire().await.unwrap().id();
    let entry = json!({ "at": 1_763_281_200_000_u64, "name": "order:9", "id": id, "by": "anna", "why": "stuck", "unsure": true });
    let written =
        client.backend().write_cell("audit:1", Expect::Absent, entry.to_string().as_bytes(), None).await;
    assert!(matches!(written, Ok(CellWrite::Written(_))), "{written:?}");
    client.job("nightly").pause_as("bob", "the disk is full").await.unwrap();
    let Some(browser) = Browser::open(DESK, &stage.home()).await else { return };
    browser.goes("#/audit").await;
    browser.reads("tbody", "Perhaps broken").await;
    browser.reads("tbody", "Job paused").await;
    browser.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_is_seen_without_asking() {
    let mut stage = Stage::open(Store::memory()).await;
    let Some(browser) = Browser::open(DESK, &stage.home()).await else { return };
    browser.goes("#/locks").await;
    browser.reads(".empty", "leasehold run demo").await;
    browser.pictures("memory-locks-empty").await;
    let client = stage.store.client("checkout", "web-1").await;
    stage.holds(&client, "order:1", None).await;
    browser.reads("table.locks", "order:1").await;
    browser.goes("#/").await;
    browser.reads(".card", "1").await;
    let other = stage.store.client("mailer", "web-2").await;
    stage.waits(&other, "order:1").await;
    browser
        .until("return document.querySelector('a.card[href=\"#/waits\"] .card-number').textContent === '1'")
        .await;
    browser.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_of_nothing_says_so() {
    let stage = Stage::open(Store::memory()).await;
    let Some(browser) = Browser::open(DESK, &stage.home()).await else { return };
    // No innerText in a drawing.
    browser.until("return document.querySelector('.chart-area').textContent.includes('Nothing yet')").await;
    browser.pictures("memory-overview-empty").await;
    browser.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn language_and_colours_are_switched_and_kept() {
    let mut stage = Stage::open(Store::memory()).await;
    let _people = shop(&mut stage).await;
    let Some(browser) = Browser::open(DESK, &stage.home()).await else { return };
    let paper = "return getComputedStyle(document.documentElement).backgroundColor";
    let light = browser.asks(paper).await;
    browser.presses("#language").await;
    browser.reads("h1", "概览").await;
    browser.presses("#theme").await;
    assert_ne!(browser.asks(paper).await, light);
    browser.reloads().await;
    browser.reads("h1", "概览").await;
    assert_ne!(browser.asks(paper).await, light);
    assert_eq!(browser.asks("return document.documentElement.lang").await, "zh-CN");
    browser.goes("#/locks").await;
    browser.reads("main", "order:42").await;
    browser.pictures("memory-locks-dark-zh").await;
    browser.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_languages_have_every_word() {
    let stage = Stage::open(Store::memory()).await;
    let Some(browser) = Browser::open(DESK, &stage.home()).await else { return };
    browser.asks("Promise.all([import('./js/english.js'), import('./js/chinese.js')]).then((all) => (window.words = all))").await;
    browser.until("return window.words !== undefined").await;
    let lacking = "const [en, zh] = words.map((one) => one.default); const names = (text) => (text.match(/{\\w+}/g) ?? []).sort().join();
        return [...new Set([...Object.keys(en), ...Object.keys(zh)])].filter((key) => !en[key] || !zh[key] || names(en[key]) !== names(zh[key]))";
    assert_eq!(browser.asks(lacking).await, json!([]));
    browser.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_and_order_live_in_the_address() {
    let mut stage = Stage::open(Store::memory()).await;
    let _people = shop(&mut stage).await;
    let Some(browser) = Browser::open(DESK, &stage.home()).await else { return };
    browser.goes("#/locks").await;
    browser.reads("table.locks", "nightly-report").await;
    browser.types("#q", "ACCOUNT").await;
    let names = "return [...document.querySelectorAll('tbody .name a')].map((one) => one.textContent)";
    browser.until("return document.querySelectorAll('tbody tr').length === 2").await;
    browser.presses("th.name button").await;
    assert_eq!(browser.place().await, "#/locks?q=ACCOUNT&sort=name");
    assert_eq!(browser.asks(names).await, json!(["account:7", "account:9"]));
    browser.presses("th.name button").await;
    browser.reloads().await;
    browser.until("return document.querySelectorAll('tbody tr').length === 2").await;
    assert_eq!(browser.asks(names).await, json!(["account:9", "account:7"]));
    assert_eq!(browser.asks("return document.querySelector('#q').value").await, "ACCOUNT");
    browser.empties("#q").await;
    browser.types("#q", "no such lock").await;
    browser.sees(".empty").await;
    browser.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_locks_come_in_pages() {
    let mut stage = Stage::open(Store::memory()).await;
    let client = stage.store.client("importer", "batch-1").await;
    for number in 0..250 {
        stage.holds(&client, &format!("row:{number:03}"), None).await;
    }
    let Some(browser) = Browser::open(DESK, &stage.home()).await else { return };
    browser.goes("#/locks").await;
    let first = "return document.querySelector('tbody .name')?.innerText";
    let mut pages = Vec::new();
    for rows in [100, 100, 50] {
        browser.until(&format!("return document.querySelectorAll('tbody tr').length === {rows}")).await;
        pages.push(browser.asks(first).await);
        if rows == 100 {
            let before = browser.place().await;
            browser.presses("[data-key=pager-next]").await;
            eventually(async || browser.place().await != before).await;
            browser.until(&format!("{first} !== {}", pages.last().unwrap())).await;
        }
    }
    pages.dedup();
    assert_eq!(pages.len(), 3, "{pages:?}");
    browser.presses("[data-key=pager-back]").await;
    browser.until(&format!("{first} === {}", pages[1])).await;
    let note = "return document.querySelector('.pager [role=status]').innerText";
    assert_eq!(browser.asks(note).await, "100 on this page");
    browser.presses("th.name button").await;
    browser.until(&format!("{note}.includes('other pages are not compared')")).await;
    browser.closes().await;
}
