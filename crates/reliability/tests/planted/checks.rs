//! What a trial runs: a case of the conformance suite on one of the stores, or a scene of its own.

use std::{future::ready, pin::Pin};

use leasehold::{backend::Memory, time::Clock};
use leasehold_redis::{Redis, RedisConfig};
use leasehold_testkit::{
    conformance::{self, Fixture, Time},
    servers::{redis::Redis as Server, start_or_skip},
};
use tokio::runtime::Builder;

/// A scene: it says whether it could be played, and panics at what must not be.
pub(crate) type Scene = fn() -> Pin<Box<dyn Future<Output = bool>>>;

/// One check.
#[derive(Clone, Copy)]
pub(crate) enum Check {
    /// A case of the suite on the memory store, in virtual time.
    Memory(&'static str, &'static str),
    /// A case of the suite on a Redis.
    Redis(&'static str, &'static str),
    /// A scene on this store, of this name.
    Scene(&'static str, &'static str, Scene),
}

impl Check {
    /// Runs it. Says whether it could be run, and panics if it finds something.
    pub(crate) fn run(self) -> bool {
        match self {
            Self::Memory(subject, case) => {
                conformance::run(Time::Paused, memory, subject, case);
                true
            }
            Self::Redis(subject, case) => on_redis(subject, case),
            Self::Scene("memory", _, scene) => Builder::new_current_thread()
                .enable_all()
                .start_paused(true)
                .build()
                .unwrap()
                .block_on(scene()),
            Self::Scene(_, _, scene) => {
                Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(scene())
            }
        }
    }

    /// What it is called.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Memory("chaos", _) => "seeded faults on memory, history checked".to_owned(),
            Self::Memory(subject, case) => format!("suite on memory: {subject}::{case}"),
            Self::Redis(subject, case) => format!("suite on Redis: {subject}::{case}"),
            Self::Scene(store, name, _) => format!("scene on {store}: {name}"),
        }
    }
}

async fn memory() -> Fixture {
    let clock = Clock::test();
    let store = Memory::with_clock(clock.clone());
    Fixture::records(move || ready(store.clone())).clock(clock)
}

fn on_redis(subject: &str, case: &str) -> bool {
    let Some(server) = start_or_skip(Server::start) else { return false };
    let url = server.url();
    let make = || {
        let url = url.clone();
        ready(Fixture::backends(move || {
            let config = RedisConfig::from_url(&url).unwrap();
            async move { Redis::open(config).await.unwrap() }
        }))
    };
    conformance::run(Time::Real, make, subject, case);
    true
}
