//! A leader that is frozen beyond its lease: another leads, the work of the old one is dropped before it can take another
//! step when it wakes, and what it writes all the same is refused by its fence. The leaders are programs that use the library.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::{fs::OpenOptions, io::Write, path::Path, process::Command, time::Duration};

use common::{Place, Running, undisturbed};
use leasehold::{
    Client, Error, ErrorKind, Leadership,
    backend::{CellWrite, Expect},
    time::Clock,
};
use leasehold_testkit::servers::{redis::Redis, start_or_skip};
use nix::sys::signal::Signal;

/// The cell that the leaders write to.
const REGISTER: &str = "register";

#[test]
fn a_frozen_leader_acts_no_more_on_sqlite() {
    let place = Place::new();
    let store = format!("sqlite:{}", place.path("locks.db").display());
    play(&place, &store);
}

#[test]
fn a_frozen_leader_acts_no_more_on_redis() {
    let Some(redis) = start_or_skip(Redis::start) else { return };
    play(&Place::new(), &redis.url());
}

fn play(place: &Place, store: &str) {
    let old = Running::start(&mut worker(place, store, "old"));
    place.wait_for_line("old acts");
    old.signal(Signal::SIGSTOP);
    let new = Running::start(&mut worker(place, store, "new"));
    place.wait_for_line("new acts");
    // What the old one waits for is there by the time it wakes: only the loss of its lead keeps it from acting.
    std::fs::write(place.path("go"), "").unwrap();
    place.wait_for_line("new acts again");
    old.signal(Signal::SIGCONT);
    assert_eq!(old.end().code, 0);
    assert_eq!(new.end().code, 0);
    let of = |node: &str| -> Vec<String> {
        place.log().iter().filter_map(|line| line.strip_prefix(node).map(str::to_owned)).collect()
    };
    assert_eq!(of("old "), ["acts", "is cancelled", "is refused"]);
    assert_eq!(of("new "), ["acts", "acts again"]);
}

/// This program once more, as a leader.
fn worker(place: &Place, store: &str, node: &str) -> Command {
    let mut command = undisturbed(std::env::current_exe().unwrap().to_str().unwrap());
    command.args(["--exact", "leader", "--ignored", "--nocapture"]);
    command.env("STORE", store).env("NODE", node).current_dir(place.path("")).env("LOG", place.path("log"));
    command
}

/// Acts once, and once more when it may; if its lead is lost in between, tries to act all the same.
#[test]
#[ignore = "the programs that the other tests start"]
fn leader() {
    let variable = |name| std::env::var(name).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let node = variable("NODE");
        let client = leasehold::connect(&variable("STORE")).await.unwrap();
        let election = client.election("x").ttl("4s");
        let mut fence = 0;
        let led = election.lead(&node, async |leadership| {
            fence = leadership.fence();
            two_acts(&client, leadership, &node).await
        });
        if let Err(error) = led.await {
            assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
            say(&node, "is cancelled");
            say(&node, if write(&client, fence).await { "is obeyed" } else { "is refused" });
        }
        client.shutdown("10s").await.unwrap();
    });
}

async fn two_acts(client: &Client, leadership: &Leadership, node: &str) -> Result<(), Error> {
    assert!(write(client, leadership.fence()).await);
    assert!(leadership.guard().remaining() <= Duration::from_secs(4), "within its lease another leads");
    say(node, "acts");
    while !Path::new("go").exists() {
        Clock::boot().pause(Duration::from_millis(10)).await;
    }
    assert!(write(client, leadership.fence()).await);
    say(node, "acts again");
    Ok(())
}

/// Writes to the register, which refuses a smaller fence than it has seen.
async fn write(client: &Client, fence: u64) -> bool {
    loop {
        let cell = client.backend().read_cell(REGISTER).await.unwrap();
        let seen = cell.as_ref().map_or(0, |cell| String::from_utf8_lossy(&cell.value).parse().unwrap());
        if fence < seen {
            return false;
        }
        let expect = cell.map_or(Expect::Absent, |cell| Expect::Version(cell.version));
        let written = client.backend().write_cell(REGISTER, expect, fence.to_string().as_bytes(), None).await;
        if let CellWrite::Written(_) = written.unwrap() {
            return true;
        }
    }
}

fn say(node: &str, what: &str) {
    let log = OpenOptions::new().create(true).append(true).open(std::env::var("LOG").unwrap());
    log.unwrap().write_all(format!("{node} {what}\n").as_bytes()).unwrap();
}
