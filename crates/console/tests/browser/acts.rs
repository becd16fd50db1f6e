//! What a reader can do: break a hold, be refused, work without a mouse, outlast the server.

use leasehold::Client;
use leasehold_console::Access;
use serde_json::json;

use crate::{
    driver::{Browser, DESK, PHONE, Shape},
    stage::{MINUTES, Stage, Store, eventually},
};

const WHY: &str = "stuck since noon";
const OPERATOR: &str = "an-operators-token-of-some-length";
const VIEWER: &str = "a-viewers-token-of-some-length-too";

pub(crate) async fn gives_token(browser: &Browser, token: &str) {
    browser.types("#field-token", token).await;
    browser.presses("dialog button[type=submit]").await;
}

async fn opens_break_dialog(browser: &Browser, token: &str) {
    browser.presses(".danger-line").await;
    gives_token(browser, token).await;
    browser.sees("#field-typed").await;
}

/// Whether the act may be done yet.
pub(crate) async fn may_go(browser: &Browser) -> bool {
    browser.asks("return !document.querySelector('dialog button[type=submit]').disabled").await == json!(true)
}

/// That a break does not end the holder's work.
const ENGLISH: &str = "does not stop their work";
const CHINESE: &str = "这不会停止他们的工作";

async fn a_hold_is_broken(store: Store, shape: Shape, warning: &str, suffix: &str) {
    let mut stage = Stage::open(store).await;
    let (holder, other) =
        (stage.store.client("backup", "batch-1").await, stage.store.client("mailer", "web-1").await);
    let guard = holder.lock("nightly report").label("nightly").acquire().await.unwrap();
    stage.waits(&other, "nightly report").await;
    let Some(browser) = Browser::open(shape, &stage.home()).await else { return };
    browser.goes("#/locks/nightly%20report").await;
    browser.presses(".danger-line").await;
    browser.types("#field-token", "not the token").await;
    browser.presses("dialog button[type=submit]").await;
    browser.sees("dialog .fault:not([hidden])").await;
    browser.empties("#field-token").await;
    gives_token(&browser, &stage.token).await;
    browser.sees("#field-typed").await;
    for text in ["backup", "batch-1", "nightly", warning] {
        browser.reads("dialog", text).await;
    }
    assert!(!may_go(&browser).await, "neither the name nor a reason was given");
    browser.types("#field-typed", "nightly").await;
    browser.types("#field-reason", WHY).await;
    assert!(!may_go(&browser).await, "half a name is not the name");
    browser.types("#field-typed", " report").await;
    assert!(may_go(&browser).await);
    browser.types("#field-by", "anna").await;
    browser.pictures(&format!("{}-break{suffix}", stage.store.name())).await;
    browser.presses("dialog button[type=submit]").await;
    let loss = tokio::time::timeout(MINUTES, guard.lost()).await.expect("the holder is told");
    assert!(loss.to_string().contains(WHY), "{loss}");
    browser.until("return document.querySelector('dialog') === null").await;
    browser.reads(".holder", "mailer").await;
    browser.goes("#/audit").await;
    for text in ["nightly report", WHY, "anna", "backup"] {
        browser.reads("tbody", text).await;
    }
    browser.pictures(&format!("{}-audit-after{suffix}", stage.store.name())).await;
    browser.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_in_memory_is_broken_by_its_name_and_a_reason() {
    a_hold_is_broken(Store::memory(), DESK, ENGLISH, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_in_memory_is_broken_in_the_dark_in_chinese() {
    a_hold_is_broken(Store::memory(), Shape { dark: true, language: "zh-CN", ..DESK }, CHINESE, "-dark-zh")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_on_redis_is_broken_by_its_name_and_a_reason() {
    let Some(redis) = Store::redis() else { return };
    a_hold_is_broken(redis, DESK, ENGLISH, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_on_redis_is_broken_from_a_phone_in_chinese() {
    let Some(redis) = Store::redis() else { return };
    a_hold_is_broken(redis, Shape { dark: true, language: "zh-CN", ..PHONE }, CHINESE, "-phone-dark-zh")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_changed_hands_is_not_broken() {
    let stage = Stage::open(Store::memory()).await;
    let (first, second) =
        (stage.store.client("first", "web-1").await, stage.store.client("second", "web-2").await);
    let guard = first.lock("order:42").acquire().await.unwrap();
    let Some(browser) = Browser::open(PHONE, &stage.home()).await else { return };
    browser.goes("#/locks/order%3A42").await;
    opens_break_dialog(&browser, &stage.token).await;
    guard.release().await.unwrap();
    let guard = second.lock("order:42").acquire().await.unwrap();
    browser.types("#field-typed", "order:42").await;
    browser.types("#field-reason", WHY).await;
    browser.presses("dialog button[type=submit]").await;
    browser.reads("dialog .fault", "changed hands: second (web-2").await;
    browser.pictures("memory-break-changed-hands-phone").await;
    guard.check().unwrap();
    assert!(is_held(&second).await);
    browser.closes().await;
}

async fn is_held(client: &Client) -> bool {
    client.inspect("order:42").await.unwrap().is_some_and(|state| !state.holders.is_empty())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_token_sees_nothing_and_a_viewer_breaks_nothing() {
    let access = Access::with_tokens(Some(OPERATOR), Some(VIEWER)).unwrap();
    let mut stage = Stage::with(Store::memory(), access, OPERATOR.to_owned()).await;
    let client = stage.store.client("checkout", "web-1").await;
    stage.holds(&client, "order:42", None).await;
    let Some(browser) = Browser::open(DESK, &stage.home()).await else { return };
    browser.goes("#/locks/order%3A42").await;
    browser.reads("main", "A token is needed").await;
    browser.pictures("memory-door").await;
    browser.presses("main .primary").await;
    gives_token(&browser, VIEWER).await;
    browser.reads(".holder", "checkout").await;
    browser.reads("#access", "Viewer").await;
    browser.sees(".live[data-state=live]").await;
    browser.presses(".danger-line").await;
    gives_token(&browser, VIEWER).await;
    browser.until("return document.querySelector('dialog') === null").await;
    assert!(is_held(&client).await);
    browser.presses(".danger-line").await;
    gives_token(&browser, OPERATOR).await;
    browser.sees("#field-typed").await;
    // Kept for this tab alone, and in no place that outlives it.
    let kept = "return [sessionStorage.getItem('leasehold.token'), Object.values(localStorage).includes(arguments[0]), document.cookie]";
    let kept = kept.replace("arguments[0]", &format!("'{OPERATOR}'"));
    assert_eq!(browser.asks(&kept).await, json!([OPERATOR, false, ""]));
    browser.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_whose_server_is_gone_says_so_and_comes_back() {
    let mut stage = Stage::open(Store::memory()).await;
    let client = stage.store.client("checkout", "web-1").await;
    stage.holds(&client, "order:42", None).await;
    let Some(browser) = Browser::open(DESK, &stage.home()).await else { return };
    browser.goes("#/locks").await;
    browser.sees(".live[data-state=live]").await;
    browser.reads("table.locks", "order:42").await;
    stage.stops().await;
    browser.sees(".live[data-state=stale]").await;
    browser.sees(".bar:not([hidden])").await;
    browser.reads("table.locks", "order:42").await;
    browser.pictures("memory-stale").await;
    stage.serves(Access::open().0).await;
    browser.sees(".live[data-state=live]").await;
    browser.sees(".bar[hidden]").await;
    stage.holds(&client, "order:43", None).await;
    browser.reads("table.locks", "order:43").await;
    browser.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_was_left_gives_up_its_connection() {
    let stage = Stage::open(Store::memory()).await;
    let Some(browser) = Browser::open(DESK, &stage.home()).await else { return };
    browser.goes("#/jobs").await;
    browser.sees(".live[data-state=live]").await;
    browser.asks("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))").await;
    browser.sees(".live[data-state=connecting]").await;
    browser.asks("setInterval(async () => (window.streams = (await (await fetch('api/v1/overview')).json()).server.streams), 100)").await;
    browser.until("return window.streams === 0").await;
    browser.asks("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))").await;
    browser.sees(".live[data-state=live]").await;
    browser.until("return window.streams === 1").await;
    browser.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_can_be_reached_without_a_mouse() {
    const ENTER: &str = "\u{e007}";
    const TAB: &str = "\u{e004}";
    const DOWN: &str = "\u{e015}";
    const ESCAPE: &str = "\u{e00c}";
    let mut stage = Stage::open(Store::memory()).await;
    let client = stage.store.client("checkout", "web-1").await;
    for name in ["order:1", "order:2"] {
        stage.holds(&client, name, None).await;
    }
    let Some(browser) = Browser::open(DESK, &stage.home()).await else { return };
    browser.goes("#/locks?sort=name").await;
    browser.reads("table.locks", "order:2").await;
    browser.keys(TAB).await;
    let focus = "return document.activeElement.className";
    assert_eq!(browser.asks(focus).await, "skip", "the first stop leads past the ways");
    let outline = browser.asks("return getComputedStyle(document.activeElement).outlineStyle").await;
    assert_eq!(outline, "solid", "what has the focus shows it");
    browser.keys(ENTER).await;
    assert_eq!(browser.asks("return document.activeElement.id").await, "room");
    browser.keys("/").await;
    assert_eq!(browser.asks("return document.activeElement.id").await, "q");
    browser.until(&reaches("a[data-key=\"order:1\"]")).await;
    browser.keys(DOWN).await;
    browser.until("return document.activeElement.textContent === 'order:2'").await;
    browser.keys(ENTER).await;
    browser.reads("main h1", "order:2").await;
    browser.until(&reaches(".danger-line")).await;
    browser.keys(ENTER).await;
    browser.sees("dialog[open]").await;
    assert_eq!(browser.asks("return document.activeElement.id").await, "field-token");
    browser.keys(ESCAPE).await;
    browser.until("return document.querySelector('dialog') === null").await;
    eventually(async || browser.asks(focus).await == json!("danger-line")).await;
    let unnamed = "return [...document.querySelectorAll('button, a, input, select')]
        .filter((one) => !one.innerText?.trim() && !one.getAttribute('aria-label') && !one.labels?.length && !one.hidden).map((one) => one.outerHTML)";
    assert_eq!(browser.asks(unnamed).await, json!([]), "everything that can be pressed has a name");
    browser.closes().await;
}

/// Takes the focus to an element that can have it.
fn reaches(css: &str) -> String {
    format!(
        "const one = document.querySelector('{css}'); if (!one || one.tabIndex < 0) return false; one.focus(); return document.activeElement === one"
    )
}
