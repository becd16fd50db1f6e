//! What a log shows of locks.
//!
//! All tests here write to one log, and look for their own names in it: `tracing` remembers for the whole process whether
//! anybody listens.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    io::Write,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use leasehold_core::{
    Client,
    backend::{BreakOutcome, Broken, Memory},
    time::Clock,
};
use tracing_subscriber::fmt::{MakeWriter, format::FmtSpan};

/// What was logged.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// The one log, as most programs keep it.
fn log() -> &'static Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    LOG.get_or_init(|| {
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::DEBUG)
            .with_ansi(false)
            .with_span_events(FmtSpan::CLOSE)
            .with_writer(log.clone())
            .finish();
        tracing::subscriber::set_global_default(subscriber).expect("nothing else here listens");
        log
    })
}

/// Its lines about locks whose names have this in them.
fn lines(about: &str) -> Vec<String> {
    let text = String::from_utf8(log().0.lock().unwrap().clone()).unwrap();
    text.lines().filter(|line| line.contains(about)).map(str::to_owned).collect()
}

fn client() -> Client {
    log();
    let clock = Clock::test();
    Client::builder(Memory::with_clock(clock.clone())).clock(clock).build()
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_is_a_span_that_says_what_came_of_it() {
    let client = client();
    let guard = client.lock("order:1").acquire().await.unwrap();
    assert!(client.lock("order:1").wait("3s").try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
    let seen = |words: &[&str]| {
        let lines = lines("order:1");
        let found = lines.iter().any(|line| words.iter().all(|word| line.contains(word)));
        assert!(found, "no line with {words:?} in {lines:#?}");
    };
    seen(&["close", r#"acquire{name="order:1" kind="exclusive""#, "fence=1", r#"outcome="acquired""#]);
    seen(&["close", r#"acquire{name="order:1" kind="exclusive""#, r#"outcome="busy" waited=3"#]);
    seen(&["DEBUG", "leasehold: granted", r#"name="order:1" kind="exclusive" fence=1"#]);
    seen(&["DEBUG", "leasehold: released", r#"name="order:1" fence=1"#]);
}

#[tokio::test(start_paused = true)]
async fn what_others_wrote_is_shown_as_text() {
    let client = client();
    let guard = client.lock("<img src=x onerror=alert(1)>\u{202e}").acquire().await.unwrap();
    let why = "\u{1b}[31mred\u{7}\nWARN leasehold: forged onerror";
    let broken = Broken { by: "\u{9b}2J".into(), why: why.into() };
    let forced = client.break_hold_as(guard.name(), guard.id(), broken).await.unwrap();
    assert_eq!(forced.outcome, BreakOutcome::Broken);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(guard.check().is_err());
    let lines = lines("onerror");
    let is_plain = |letter: char| !(letter.is_control() || letter == '\u{202e}');
    assert!(lines.iter().all(|line| line.chars().all(is_plain)), "{lines:?}");
    let lost: Vec<_> = lines.iter().filter(|line| line.contains("WARN")).collect();
    assert!(lost.len() == 1 && lost[0].contains("broken") && lost[0].contains("fence=1"), "{lines:#?}");
}
