//! A real Chromium, driven: opened in some shape, looked at, clicked, typed into, photographed, closed.
//!
//! Chromedriver is a child process on a free port, gone with the test. The browser talks to it through a pipe and ends
//! when that closes, so none is left behind. Waiting is for what the page shows, never for a time.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    time::Duration,
};

use fantoccini::{Client, ClientBuilder, Locator, elements::Element, wd::WebDriverCompatibleCommand};
use hyper_util::client::legacy::connect::HttpConnector;
use leasehold_testkit::servers::{Recipe, Server, start_or_skip};
use serde_json::{Value, json};

/// Turns of waiting, of 25 ms and a question each: minutes.
const TURNS: usize = 2400;

const DRIVER: Recipe = Recipe {
    program: "chromedriver",
    package: "chromium-driver",
    arguments: |port, _| vec![format!("--port={port}")],
    answers,
};

fn answers(address: SocketAddr) -> bool {
    let asked = || {
        let mut socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
        socket.write_all(b"GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = [0; 12];
        socket.read_exact(&mut answer)?;
        Ok::<_, std::io::Error>(answer.ends_with(b"200"))
    };
    asked().unwrap_or(false)
}

/// What the browser is like to its reader.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) phone: bool,
    pub(crate) dark: bool,
    pub(crate) language: &'static str,
}

pub(crate) const DESK: Shape = Shape { width: 1360, height: 1000, phone: false, dark: false, language: "en" };
pub(crate) const PHONE: Shape = Shape { width: 390, height: 844, phone: true, dark: false, language: "en" };

/// A browser with one page open.
pub(crate) struct Browser {
    client: Client,
    home: String,
    _driver: Server,
}

impl Browser {
    /// Opens a browser of this shape on the page at `home`; `None`, said aloud, if there is none and may be none.
    pub(crate) async fn open(shape: Shape, home: &str) -> Option<Self> {
        let driver = start_or_skip(|| Server::start(DRIVER))?;
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(capabilities(shape));
        let client = builder.connect(&format!("http://{}", driver.address())).await.unwrap();
        let browser = Self { client, home: home.to_owned(), _driver: driver };
        browser.goes("#/").await;
        Some(browser)
    }

    /// Goes to a place of the page, by loading it.
    pub(crate) async fn goes(&self, place: &str) {
        self.client.goto("about:blank").await.unwrap();
        self.client.goto(&format!("{}{place}", self.home)).await.unwrap();
        self.sees("main h1, main h2").await;
    }

    /// Loads the page again.
    pub(crate) async fn reloads(&self) {
        self.client.refresh().await.unwrap();
        self.sees("main h1, main h2").await;
    }

    /// What a script returns.
    pub(crate) async fn asks(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap()
    }

    /// Waits until a script returns true.
    pub(crate) async fn until(&self, script: &str) {
        for _ in 0..TURNS {
            if self.asks(script).await == json!(true) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        let shown = self.asks("return document.body.innerText").await;
        panic!("never so: {script}\nthe page shows: {shown}");
    }

    /// Waits until something is there.
    pub(crate) async fn sees(&self, css: &str) {
        self.until(&format!("return document.querySelector({}) !== null", quoted(css))).await;
    }

    /// Waits until something is there with this text in it.
    pub(crate) async fn reads(&self, css: &str, text: &str) {
        let (css, text) = (quoted(css), quoted(text));
        self.until(&format!(
            "return [...document.querySelectorAll({css})].some((one) => one.innerText.includes({text}))"
        ))
        .await;
    }

    /// Presses the first thing that this selector finds. The page redraws by itself, so what was found may be gone by
    /// then: it is found again.
    pub(crate) async fn presses(&self, css: &str) {
        for _ in 0..TURNS {
            if let Ok(found) = self.client.find(Locator::Css(css)).await
                && found.click().await.is_ok()
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("cannot press {css}");
    }

    /// Types into a field, after what is there.
    pub(crate) async fn types(&self, css: &str, text: &str) {
        self.sees(css).await;
        self.client.find(Locator::Css(css)).await.unwrap().send_keys(text).await.unwrap();
    }

    /// Empties a field.
    pub(crate) async fn empties(&self, css: &str) {
        self.client.find(Locator::Css(css)).await.unwrap().clear().await.unwrap();
    }

    /// Sends keys to whatever has the focus.
    pub(crate) async fn keys(&self, keys: &str) {
        let focused: Element = self.client.active_element().await.unwrap();
        focused.send_keys(keys).await.unwrap();
    }

    /// Where the page is, after its `#`.
    pub(crate) async fn place(&self) -> String {
        self.asks("return location.hash").await.as_str().unwrap().to_owned()
    }

    /// Keeps a picture of what is seen, in `target/screens`.
    pub(crate) async fn pictures(&self, name: &str) {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).with_file_name("screens");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), self.client.screenshot().await.unwrap()).unwrap();
    }

    /// Ends the browser. No script has failed and nothing was refused by the page's own policy while it was open.
    pub(crate) async fn closes(self) {
        assert!(self.client.get_alert_text().await.is_err(), "a dialog came up");
        let log = self.client.issue_cmd(Log).await.unwrap();
        let bad: Vec<&Value> = log.as_array().unwrap().iter().filter(|entry| is_fault(entry)).collect();
        self.client.close().await.unwrap();
        assert!(bad.is_empty(), "the browser complained: {bad:#?}");
    }
}

/// A refused request is noted by the browser, too; tests ask for those on purpose.
fn is_fault(entry: &Value) -> bool {
    entry["level"] == "SEVERE" && entry["source"] != "network"
}

fn capabilities(shape: Shape) -> serde_json::Map<String, Value> {
    let mut arguments = vec![
        "--headless=new".to_owned(),
        "--remote-debugging-pipe".to_owned(),
        "--disable-gpu".to_owned(),
        "--disable-dev-shm-usage".to_owned(),
        "--hide-scrollbars".to_owned(),
        format!("--lang={}", shape.language),
        format!("--window-size={},{}", shape.width, shape.height),
        // Blink counts dark as 0 and light as 1.
        format!("--blink-settings=preferredColorScheme={}", u8::from(!shape.dark)),
    ];
    // Chromium refuses to run as root within its sandbox.
    if std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0) {
        arguments.push("--no-sandbox".to_owned());
    }
    let mut options = json!({ "args": arguments, "prefs": { "intl.accept_languages": shape.language } });
    if shape.phone {
        options["mobileEmulation"] = json!({ "deviceMetrics": { "width": shape.width, "height": shape.height, "pixelRatio": 2.0, "touch": true } });
    }
    let all = json!({ "browserName": "chrome", "goog:loggingPrefs": { "browser": "ALL" }, "goog:chromeOptions": options });
    let Value::Object(all) = all else { unreachable!("it is an object above") };
    all
}

/// Text as a script has it.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// What the browser has to say of the page.
#[derive(Debug)]
struct Log;

impl WebDriverCompatibleCommand for Log {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/se/log", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(json!({ "type": "browser" }).to_string()))
    }
}
