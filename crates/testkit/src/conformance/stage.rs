//! Runs one case: a runtime of its own, a fixture of its own, and a watchdog.

use std::{future::Future, pin::Pin, time::Duration};

use tokio::runtime::{Builder, Runtime};

use super::{
    Fixture,
    need::{Need, refused},
};

/// Whose time a store is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// The runtime's, paused: it jumps when nothing else is left to do, and seconds cost nothing.
    Paused,
    /// The machine's.
    Real,
    /// The machine's, where every step takes several times as long as elsewhere: confirmed among several servers on one
    /// machine, or without anybody who wakes those who wait.
    Slow,
}

/// A case on its way to be run.
pub(super) struct Case {
    pub(super) needs: &'static [Need],
    pub(super) body: Body,
}

/// What a case is.
pub(super) enum Body {
    /// Runs within a runtime.
    Within(fn(Fixture) -> Running),
    /// Has runtimes of its own, to end them.
    Around(fn(&Stage<'_>)),
}

pub(super) type Running = Pin<Box<dyn Future<Output = ()>>>;

/// What it takes to set up a store.
pub(super) struct Stage<'a> {
    time: Time,
    make: &'a dyn Fn() -> Pin<Box<dyn Future<Output = Fixture>>>,
}

impl Stage<'_> {
    /// A runtime for this store's sort of time.
    pub(super) fn runtime(&self) -> Runtime {
        let built = match self.time {
            Time::Paused => Builder::new_current_thread().enable_all().start_paused(true).build(),
            Time::Real | Time::Slow => Builder::new_multi_thread().worker_threads(2).enable_all().build(),
        };
        built.expect("a test process can have a runtime")
    }

    /// A store, set up on the current runtime.
    pub(super) async fn fixture(&self) -> Fixture {
        (self.make)().await
    }

    /// What takes longer never ends: it tells nothing of speed. In paused time a case that waits for what never comes arrives here at once.
    async fn watched(&self, running: impl Future<Output = ()>) {
        let limit = match self.time {
            Time::Paused => Duration::from_secs(2 * 3600),
            Time::Real => Duration::from_secs(60),
            Time::Slow => Duration::from_secs(240),
        };
        assert!(tokio::time::timeout(limit, running).await.is_ok(), "the case did not end within {limit:?}");
    }
}

/// Runs the case of this name; the macro calls this.
#[doc(hidden)]
pub fn run<F>(time: Time, make: impl Fn() -> F, subject: &str, case: &str)
where
    F: Future<Output = Fixture> + 'static,
{
    let Case { needs, body } = super::find(subject, case).expect("the macro names cases that exist");
    let make: &dyn Fn() -> Pin<Box<dyn Future<Output = Fixture>>> = &|| Box::pin(make());
    let stage = Stage { time, make };
    let body = match body {
        Body::Around(body) => return body(&stage),
        Body::Within(body) => body,
    };
    let runtime = stage.runtime();
    runtime.block_on(stage.watched(async {
        let fixture = stage.fixture().await;
        let can = fixture.can().await;
        let lacking: Vec<Need> = needs.iter().copied().filter(|need| !need.is_met(&can)).collect();
        if lacking.is_empty() {
            return body(fixture).await;
        }
        for need in lacking {
            refused(&fixture, need).await;
        }
    }));
}
