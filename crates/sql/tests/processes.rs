//! Sessions and bells between processes: the dead are noticed at once, the living are woken.
//!
//! The other process is this test program again, run with one test of its own: [`child`].
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![cfg(target_os = "linux")]

mod common;

use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use common::{Place, claim, lose, stand_in_line, win};
use leasehold_core::backend::Release;
use leasehold_sql::{Sqlite, SqliteConfig};

const ROLE: &str = "LEASEHOLD_TEST_ROLE";
const FILE: &str = "LEASEHOLD_TEST_FILE";

/// What the other process does. As a test of its own it does nothing.
#[tokio::test]
async fn child() {
    let (Ok(role), Some(file)) = (env::var(ROLE), env::var_os(FILE)) else { return };
    let store = Sqlite::open(SqliteConfig::new(PathBuf::from(file))).await.unwrap();
    let mut claim = claim(&store, "x");
    match role.as_str() {
        "hold" => {
            win(&mut claim).await;
            say("held");
        }
        "hold two" => {
            win(&mut claim).await;
            win(&mut common::claim(&store, "y")).await;
            say("held");
        }
        "wait" => {
            stand_in_line(&mut claim).await;
            say("waiting");
            // Nothing but a bell completes this.
            claim.changed().await.unwrap();
            win(&mut claim).await;
            say("woken");
        }
        other => panic!("no such role: {other}"),
    }
    // Until we are killed, or the parent is gone.
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn say(word: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{word}").unwrap();
    out.flush().unwrap();
}

struct Other {
    process: Child,
    words: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Other {
    fn start(place: &Place, role: &str) -> Self {
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(ROLE, role)
            .env(FILE, place.file())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let words = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, words }
    }

    fn says(&mut self, word: &str) {
        assert!(
            self.words.by_ref().any(|line| line.unwrap() == word),
            "the other process never said {word:?}"
        );
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn a_killed_holder_is_noticed_at_once() {
    let place = Place::new();
    let store = place.open().await;
    let mut other = Other::start(&place, "hold");
    other.says("held");
    let mut ours = claim(&store, "x");
    let busy = lose(&mut ours).await;
    assert_eq!(busy.holders[0].who.pid, other.process.id());
    other.kill();
    win(&mut ours).await;
    assert_eq!(place.sessions().len(), 1, "the dead session's file is gone, ours is there");
}

#[tokio::test]
async fn a_killed_holder_of_two_locks_is_noticed_at_once_for_both() {
    let place = Place::new();
    let store = place.open().await;
    let mut other = Other::start(&place, "hold two");
    other.says("held");
    let (mut x, mut y) = (claim(&store, "x"), claim(&store, "y"));
    lose(&mut x).await;
    lose(&mut y).await;
    other.kill();
    win(&mut x).await;
    assert_eq!(place.sessions().len(), 2, "the dead session's file proves that y is free");
    win(&mut y).await;
    assert_eq!(place.sessions().len(), 1, "ours");
}

#[tokio::test]
async fn a_killed_waiter_is_not_in_the_way() {
    let place = Place::new();
    let store = place.open().await;
    let mut holder = claim(&store, "x");
    win(&mut holder).await;
    let mut other = Other::start(&place, "wait");
    other.says("waiting");
    other.kill();
    // We wait behind the dead one, and it is us who must be rung.
    let mut waiter = claim(&store, "x");
    stand_in_line(&mut waiter).await;
    assert_eq!(holder.release().await.unwrap(), Release::Released);
    waiter.changed().await.unwrap();
    win(&mut waiter).await;
}

#[tokio::test]
async fn a_release_wakes_a_waiter_in_another_process() {
    let place = Place::new();
    let store = place.open().await;
    let mut holder = claim(&store, "x");
    win(&mut holder).await;
    let mut other = Other::start(&place, "wait");
    other.says("waiting");
    assert_eq!(holder.release().await.unwrap(), Release::Released);
    other.says("woken");
    lose(&mut holder).await;
}
