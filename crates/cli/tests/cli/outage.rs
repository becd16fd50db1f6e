//! What tells as it happens, while the store is away: it says so, goes on trying, and goes on telling.

use std::{fs, fs::File, process::Child};

use leasehold_testkit::servers::{redis::Redis, start_or_skip};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::common::{Place, outcome, wait_until};

/// A process that writes into files of its own; ended when it goes out of scope.
struct Telling<'a> {
    place: &'a Place,
    child: Child,
}

impl<'a> Telling<'a> {
    fn start(place: &'a Place, store: &str, args: &[&str]) -> Self {
        let mut command = place.bare(args);
        let file = |name| File::create(place.path(name)).unwrap();
        command.env("LEASEHOLD_STORE", store).stdout(file("told")).stderr(file("said"));
        Self { place, child: command.spawn().unwrap() }
    }

    /// Waits until it has written this.
    fn wait_for(&mut self, file: &str, text: &str) {
        wait_until(text, || {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended: {ended:?} {}", self.read("said"));
            self.read(file).contains(text)
        });
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.place.path(file)).unwrap()
    }

    /// Kills the server, waits until that is noticed, and starts it again on what it had.
    fn outage(&mut self, server: &mut Redis) {
        server.crash().unwrap();
        self.wait_for("said", "cannot look, and goes on trying: ");
        server.restart().unwrap();
    }

    fn interrupted(mut self) -> Option<i32> {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGINT).unwrap();
        wait_until("the end", || self.child.try_wait().unwrap().is_some());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn take(place: &Place, store: &str, name: &str) {
    let taken = outcome(place.bare(&["acquire", name, "--ttl", "1h"]).env("LEASEHOLD_STORE", store));
    assert_eq!(taken.code, 0, "{taken:?}");
}

#[test]
fn watch_goes_on_through_an_outage_and_says_so() {
    let Some(mut server) = start_or_skip(Redis::start_durable) else { return };
    let (place, store) = (Place::new(), server.url());
    take(&place, &store, "before");
    let mut watch = Telling::start(&place, &store, &["watch", "--every", "50ms"]);
    watch.wait_for("told", "  acquired  before  ");
    watch.outage(&mut server);
    watch.wait_for("said", "looks again; what came and went meanwhile was not seen");
    take(&place, &store, "after");
    watch.wait_for("told", "  acquired  after  ");
    assert_eq!(watch.read("told").matches("before").count(), 1, "what stood all the while is not told again");
    assert_eq!(watch.read("said").matches("cannot look").count(), 1, "one outage is said once");
    assert_eq!(watch.interrupted(), Some(0));
}

#[test]
fn observers_of_an_election_go_on_through_an_outage() {
    let Some(mut server) = start_or_skip(Redis::start_durable) else { return };
    let (place, store) = (Place::new(), server.url());
    let mut observer = Telling::start(&place, &store, &["elect", "x", "--observe", "--every", "50ms"]);
    observer.wait_for("told", "nobody leads");
    observer.outage(&mut server);
    let led = [
        "elect",
        "x",
        "--value",
        "10.0.0.7:8080",
        "--",
        "sh",
        "-c",
        "while ! grep -q 8080 told; do sleep 0.02; done",
    ];
    let led = outcome(place.bare(&led).env("LEASEHOLD_STORE", &store));
    assert_eq!(led.code, 0, "{led:?}");
    observer.wait_for("told", " leads, fence ");
    assert_eq!(observer.interrupted(), Some(0));
}
