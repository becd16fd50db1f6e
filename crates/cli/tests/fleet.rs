//! Three machines, one job every second, clocks ten minutes apart, one machine killed and restarted again and again: every
//! slot runs once or is shown as missed, and none runs twice.
//!
//! For fifteen seconds; `LEASEHOLD_FLEET_SECONDS=60` for a minute. Who is killed when is drawn from a seed, which is printed;
//! `LEASEHOLD_SEED` plays it again, as far as processes can be.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use common::{Place, outcome, pause};
use leasehold_testkit::{
    scripted::Dice,
    servers::{redis::Redis, skew::Skew, start_or_skip},
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

/// What each machine's clock is off by.
const SKEWS: [i64; 3] = [-600_000, 0, 600_000];

/// The slot, the machine, and what it takes for the time; and a while in which it can be killed.
const TICK: &str = "echo $LEASEHOLD_SLOT $NODE $(date +%s) >> $LOG; sleep 0.4";

#[test]
fn a_fleet_on_sqlite_runs_every_slot_once() {
    let place = Place::new();
    let store = format!("sqlite:{}", place.path("locks.db").display());
    Fleet::start(&place, &store).play("SQLite");
}

#[test]
fn a_fleet_on_redis_runs_every_slot_once() {
    let place = Place::new();
    let Some(redis) = start_or_skip(Redis::start) else { return };
    Fleet::start(&place, &redis.url()).play("Redis");
}

/// The machines, and what was seen of their job.
struct Fleet<'p> {
    place: &'p Place,
    store: String,
    clocks: Vec<Skew>,
    machines: Vec<Child>,
    killed: usize,
    /// Slots that the job's history showed as not run to their end, and how.
    shown: BTreeMap<u64, String>,
}

impl<'p> Fleet<'p> {
    fn start(place: &'p Place, store: &str) -> Self {
        let mut fleet = Self {
            place,
            store: store.to_owned(),
            clocks: Vec::new(),
            machines: Vec::new(),
            killed: 0,
            shown: BTreeMap::new(),
        };
        for (number, skew) in SKEWS.into_iter().enumerate() {
            let clock = Skew::compile().unwrap();
            clock.set(skew).unwrap();
            fleet.clocks.push(clock);
            let machine = fleet.machine(number);
            fleet.machines.push(machine);
        }
        fleet
    }

    fn machine(&self, number: usize) -> Child {
        let args = ["cron", "tick", "--schedule", "* * * * * *", "--at-most", "10s", "--ttl", "2s", "--"];
        let mut command = self.place.bare(&[&args[..], &["sh", "-c", TICK]].concat());
        command.env("LEASEHOLD_STORE", &self.store).env("NODE", number.to_string());
        command.envs(self.clocks[number].variables());
        command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap()
    }

    fn play(mut self, what: &str) {
        let seconds = std::env::var("LEASEHOLD_FLEET_SECONDS").ok().and_then(|text| text.parse().ok());
        let (begun, span) = (Instant::now(), Duration::from_secs(seconds.unwrap_or(15)));
        let mut dice = Dice::of_the_day();
        while begun.elapsed() < span {
            let rest = Instant::now();
            let length = Duration::from_millis(1000 + dice.below(2000));
            while rest.elapsed() < length {
                self.look();
                (0..40).for_each(|_| pause());
            }
            self.strike(dice.below(3) as usize);
        }
        self.end();
        let mut state = Value::Null;
        // One that was killed on the way is known to be dead when its lease is over.
        common::wait_until("the last run", || {
            state = self.look();
            state["running"].is_null()
        });
        self.judge(what, &state);
    }

    /// Kills a machine and starts it again.
    fn strike(&mut self, number: usize) {
        self.machines[number].kill().unwrap();
        self.machines[number].wait().unwrap();
        self.machines[number] = self.machine(number);
        self.killed += 1;
    }

    /// What is known of the job. The history is short, so it is looked at often.
    fn look(&mut self) -> Value {
        let mut command = self.place.bare(&["job", "show", "tick", "-o", "json"]);
        let shown = outcome(command.env("LEASEHOLD_STORE", &self.store));
        let state: Value = serde_json::from_str(&shown.stdout).unwrap_or_default();
        for run in state["runs"].as_array().into_iter().flatten() {
            let how = run["outcome"].as_str().unwrap();
            let last = second(&run["slot"]);
            let first = if how == "missed" { second(&run["from"]) } else { last };
            for slot in first..=last {
                self.shown.insert(slot, how.to_owned());
            }
        }
        state
    }

    fn end(&mut self) {
        for machine in &self.machines {
            kill(Pid::from_raw(machine.id().cast_signed()), Signal::SIGTERM).unwrap();
        }
        for machine in &mut self.machines {
            common::wait_until("the end of a machine", || machine.try_wait().unwrap().is_some());
        }
    }

    #[expect(clippy::print_stdout, reason = "the figures are what the run is for")]
    fn judge(&self, what: &str, state: &Value) {
        let runs: Vec<(u64, usize, i64)> = self.place.log().iter().map(|line| parsed(line)).collect();
        let ran: BTreeSet<u64> = runs.iter().map(|(slot, ..)| *slot).collect();
        assert_eq!(ran.len(), runs.len(), "a slot was run twice: {runs:?}");
        for (slot, machine, time) in &runs {
            let off = time - slot.cast_signed();
            let wrong = SKEWS[*machine] / 1000;
            assert!((off - wrong).abs() < 300, "the clock of {machine} is off by {off}, not {wrong}");
        }
        let (first, last) = (*ran.first().unwrap(), second(&state["last"]));
        let (mut missed, mut others) = (0, BTreeMap::new());
        for slot in first..=last {
            match self.shown.get(&slot).map_or("nothing", String::as_str) {
                "done" => assert!(ran.contains(&slot), "{slot} is shown as done and was not run"),
                "missed" => {
                    assert!(!ran.contains(&slot), "{slot} is shown as missed and was run");
                    missed += 1;
                }
                // Killed on the way: it may have been run or not, but somebody had begun.
                how @ ("died" | "failed" | "lost") => *others.entry(how).or_insert(0) += 1,
                how => panic!("{slot} is shown as {how}: {:?}", self.shown),
            }
        }
        let machines: BTreeSet<usize> = runs.iter().map(|(_, machine, _)| *machine).collect();
        let (slots, killed) = (last - first + 1, self.killed);
        println!(
            "{what}: {slots} slots, {} run once, none twice, {missed} missed, {others:?}; {killed} kills, run by {} machines",
            ran.len(),
            machines.len()
        );
        assert!(killed > 3 && ran.len() > 5, "it is not worth much: {} runs, {killed} kills", ran.len());
        assert!(state["totals"]["missed"].as_u64().unwrap() >= missed);
    }
}

impl Drop for Fleet<'_> {
    fn drop(&mut self) {
        for machine in &mut self.machines {
            let _ = machine.kill();
            let _ = machine.wait();
        }
    }
}

/// A line of the log.
fn parsed(line: &str) -> (u64, usize, i64) {
    let mut words = line.split(' ');
    let mut word = || words.next().unwrap();
    (second(&word().into()), word().parse().unwrap(), word().parse().unwrap())
}

/// The second that a slot is, since 1970.
fn second(slot: &Value) -> u64 {
    let slot: jiff::Timestamp = slot.as_str().unwrap().parse().unwrap();
    slot.as_second().cast_unsigned()
}
