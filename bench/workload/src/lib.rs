//! What a lock is put to in a benchmark, the same for every library in Rust.
//!
//! A program is started as `PROGRAM URL SCENARIO TASKS SECONDS [MORE…]`. It connects, says `ready` on a line, waits for
//! a line that says `go`, does the scenario, says what came of it as one line of JSON ([`Said`]), and ends. Whoever
//! started it looks at the server meanwhile: what a program says of itself is only what nobody else can see. Programs
//! in other languages speak the same; `bench/peers/README.md` has it in full.
//!
//! Nothing here knows a library, ours included: each is a [`Peer`].

#![allow(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "statistics: no figure is that large")]

mod clock;
mod conversation;
mod counter;
mod pairs;
mod peer;
mod said;
mod turns;
mod waiters;

use std::{process::ExitCode, time::Duration};

pub use crate::{
    clock::{processor_time, resident},
    conversation::Conversation,
    peer::{Lock, Peer},
    said::{QUANTILES, Said},
};

/// What is asked of a program.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ask {
    /// The store.
    pub url: String,
    /// What to do.
    pub scenario: String,
    /// How many do it at once.
    pub tasks: usize,
    /// For how long, where it is not done when it is done.
    pub seconds: f64,
    /// What only this program understands.
    pub more: Vec<String>,
}

impl Ask {
    /// Reads what follows the program's name.
    ///
    /// # Errors
    /// A sentence about what is missing.
    pub fn read(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut words = words.into_iter();
        let mut word = |what: &str| words.next().ok_or_else(|| format!("{what} is missing; {USAGE}"));
        let (url, scenario) = (word("the URL")?, word("the scenario")?);
        let tasks = word("the number of tasks")?.parse().map_err(|error| format!("tasks: {error}"))?;
        let seconds = word("the number of seconds")?.parse().map_err(|error| format!("seconds: {error}"))?;
        Ok(Self { url, scenario, tasks, seconds, more: words.collect() })
    }
}

const USAGE: &str = "start it with URL SCENARIO TASKS SECONDS";

/// The `main` of a program that puts one library to work.
#[expect(clippy::print_stderr, reason = "it is a program, and this is its complaint")]
pub fn main_for<P: Peer>() -> ExitCode {
    let ask = match Ask::read(std::env::args().skip(1)) {
        Ok(ask) => ask,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(64);
        }
    };
    match perform::<P>(&ask) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

/// Does what is asked, in a runtime as users have it: tokio's default.
///
/// # Errors
/// What went wrong, in a sentence.
pub fn perform<P: Peer>(ask: &Ask) -> Result<(), String> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    // Libraries that block get a thread for each task.
    let runtime = builder.enable_all().max_blocking_threads(1200).build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let done = runtime.block_on(scenario::<P>(ask, Conversation::begin()));
    // What hangs in a library that deadlocks must not keep the program.
    runtime.shutdown_timeout(Duration::from_millis(200));
    done
}

async fn scenario<P: Peer>(ask: &Ask, mut conversation: Conversation) -> Result<(), String> {
    if ask.scenario == "version" {
        return conversation.say(&P::version());
    }
    let peer = P::connect(ask).await?;
    match ask.scenario.as_str() {
        "pairs" => pairs::run(&peer, ask, &mut conversation).await,
        "counter" => counter::run(&peer, ask, None, &mut conversation).await,
        "hold" => counter::run(&peer, ask, Some(Duration::from_millis(1)), &mut conversation).await,
        "turns" => turns::run(&peer, &mut conversation).await,
        "waiters" => waiters::run(&peer, ask, &mut conversation).await,
        other => Err(format!("no scenario is called {other:?}")),
    }
}

/// A few rounds, so that connections are made and scripts are known before anything is measured.
async fn warm<P: Peer>(peer: &P) -> Result<(), String> {
    let lock = peer.lock(&format!("bench:warm:{}", std::process::id()));
    for _ in 0..50 {
        let held = lock.acquire().await?;
        lock.release(held).await?;
    }
    Ok(())
}
