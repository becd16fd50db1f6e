//! Names and labels by strangers: markup, escapes and turned text are shown as what they are.

use leasehold::Client;
use serde_json::{Value, json};

use crate::{
    driver::{Browser, DESK},
    stage::{Stage, Store},
};

const IMAGE: &str = "<img src=x onerror=alert(1)>";
const DRAWING: &str = "\"><svg onload=alert(2)>\u{1b}[31mred\u{202e}drawkcab";
const TURNED: &str = "order\u{202e}drawkcab\u{200b}\u{3164}";
const SCRIPT: &str = "</script><script>alert(3)</script>";

/// As the page writes it out.
const TURNED_SHOWN: &str = "order\\u{202e}drawkcab\\u{200b}\\u{3164}";
const DRAWING_SHOWN: &str = "\"><svg onload=alert(2)>\\u{1b}[31mred\\u{202e}drawkcab";

/// Every text on the page that comes from a stranger.
const TEXTS: &str =
    "return [...document.querySelectorAll('main bdi, main svg text')].map((one) => one.textContent)";

async fn strangers(stage: &mut Stage) -> Client {
    let stranger = stage.store.client(SCRIPT, IMAGE).await;
    stage.holds(&stranger, IMAGE, Some(DRAWING)).await;
    stage.holds(&stranger, TURNED, Some(IMAGE)).await;
    let other = stage.store.client(DRAWING, "web-1").await;
    stage.waits(&other, IMAGE).await;
    stranger
}

fn shows(texts: &Value, wanted: &str) -> bool {
    texts.as_array().unwrap().iter().any(|text| text == wanted)
}

/// Nothing of what strangers wrote has become part of the page.
async fn is_clean(browser: &Browser) {
    let made = "return document.querySelectorAll('main img, main script, [onerror], [onload]').length";
    assert_eq!(browser.asks(made).await, json!(0));
}

async fn shown_as_text(store: Store) {
    let mut stage = Stage::open(store).await;
    let _stranger = strangers(&mut stage).await;
    let Some(browser) = Browser::open(DESK, &stage.home()).await else { return };
    for place in ["#/", "#/locks", "#/waits"] {
        browser.goes(place).await;
        browser.reads("main", IMAGE).await;
        is_clean(&browser).await;
        assert!(shows(&browser.asks(TEXTS).await, SCRIPT), "{place}");
    }
    browser.goes("#/locks").await;
    browser.reads("table.locks .name", TURNED_SHOWN).await;
    browser.reads("table.locks .label", DRAWING_SHOWN).await;
    browser.pictures(&format!("{}-hostile", stage.store.name())).await;
    browser.presses(&format!("a[data-key={}]", serde_json::to_string(IMAGE).unwrap())).await;
    browser.reads("h1", IMAGE).await;
    browser.reads(".label", DRAWING_SHOWN).await;
    assert!(!browser.asks("return document.title").await.as_str().unwrap().contains('\u{1b}'));
    is_clean(&browser).await;
    breaks(&browser, &stage.token).await;
    browser.closes().await;
}

/// The dialog shows strangers' words too, and so does what is kept of it.
async fn breaks(browser: &Browser, token: &str) {
    browser.presses(".danger-line").await;
    browser.types("#field-token", token).await;
    browser.presses("dialog button[type=submit]").await;
    browser.sees("#field-typed").await;
    browser.types("#field-typed", IMAGE).await;
    browser.types("#field-reason", SCRIPT).await;
    browser.presses("dialog button[type=submit]").await;
    browser.until("return document.querySelector('dialog') === null").await;
    browser.goes("#/audit").await;
    browser.reads("tbody", SCRIPT).await;
    browser.reads("tbody", IMAGE).await;
    is_clean(browser).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn markup_and_escapes_in_memory_are_shown_as_text() {
    shown_as_text(Store::memory()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn markup_and_escapes_on_redis_are_shown_as_text() {
    let Some(redis) = Store::redis() else { return };
    shown_as_text(redis).await;
}
