//! Two hundred processes that want one lock, and forty of them killed: the promise of `run`, in one file because
//! it takes longest.
//!
//! Each child reads a number from a file, waits a little, and writes the number plus one: an overlap of two loses an
//! increment. Each also appends to one log when it starts, works and ends. The order of the lines is the order of
//! the events, so nothing here depends on how long anything took.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    hash::{BuildHasher, RandomState},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use common::{Place, pause};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

const CROWD: usize = 200;
const KILLED: usize = 40;
const TTL: Duration = Duration::from_secs(60);

/// Reads, waits, writes. Every fourth child does not end when it is asked to. The number is put in place whole, so
/// that a child killed on the way leaves the old one.
const INCREMENT: &str = r"
[ $(($1 % 4)) = 0 ] && trap '' TERM
echo start $1 $LEASEHOLD_FENCE >> $LOG
read number < counter
echo reads $1 >> $LOG
sleep 0.01
echo $((number + 1)) > counter.$1
echo writes $1 >> $LOG
mv counter.$1 counter
echo end $1 >> $LOG
";

#[test]
fn two_hundred_increments_are_two_hundred() {
    let place = Place::new();
    let mut crowd = Crowd::start(&place);
    assert_eq!(crowd.until_all_have_ended(), CROWD, "all of them ended well");
    assert_eq!(counter(&place), CROWD);
    check_log(&place.log(), &BTreeSet::new());
}

#[test]
fn forty_killed_holders_and_waiters_harm_nobody_else() {
    let place = Place::new();
    let mut crowd = Crowd::start(&place);
    let killed = crowd.kill_some(&place);
    let last_kill = Instant::now();
    let survivors = crowd.until_all_have_ended();
    let (whole, rest) = (crowd.begun.elapsed(), last_kill.elapsed());
    println!(
        "{survivors} survivors through after {whole:.1?}, {rest:.1?} after the last kill; a lease is {TTL:.0?}"
    );
    assert_eq!(survivors, CROWD - killed.len(), "every survivor ended well");
    assert!(rest < TTL, "a killed holder's lease had to run out first: {rest:?}");
    check_log(&place.log(), &killed);
    // A killed holder's own increment may be there or not.
    let count = counter(&place);
    assert!((survivors..=CROWD).contains(&count), "{count} increments of {survivors} survivors");
}

/// Many processes that want one lock.
struct Crowd {
    all: Vec<Option<Child>>,
    begun: Instant,
    ended_well: usize,
}

impl Crowd {
    fn start(place: &Place) -> Self {
        fs::write(place.path("counter"), "0\n").unwrap();
        fs::write(place.path("increment"), INCREMENT).unwrap();
        let begun = Instant::now();
        let all = (0..CROWD).map(|number| Some(spawn(place, number))).collect();
        Self { all, begun, ended_well: 0 }
    }

    /// Kills forty, half of them while they hold the lock, at random moments; says which.
    fn kill_some(&mut self, place: &Place) -> BTreeSet<usize> {
        let (mut killed, mut random) = (BTreeSet::new(), Random::new());
        while killed.len() < KILLED && self.all.iter().any(Option::is_some) {
            let holder = place.log().last().and_then(|line| line.split(' ').nth(1)?.parse().ok());
            let anybody = random.below(CROWD);
            let victim = if random.below(2) == 0 { holder.unwrap_or(anybody) } else { anybody };
            if self.all[victim].as_mut().is_some_and(|child| child.try_wait().unwrap().is_none()) {
                let mut child = self.all[victim].take().unwrap();
                kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL).unwrap();
                child.wait().unwrap();
                killed.insert(victim);
            }
            (0..random.below(6)).for_each(|_| pause());
            self.look();
        }
        killed
    }

    /// Waits for the rest; says how many ended well.
    fn until_all_have_ended(&mut self) -> usize {
        common::wait_until("the crowd", || {
            self.look();
            self.all.iter().all(Option::is_none)
        });
        self.ended_well
    }

    /// Takes note of those that have ended by themselves.
    fn look(&mut self) {
        for slot in &mut self.all {
            if let Some(status) = slot.as_mut().and_then(|child| child.try_wait().unwrap()) {
                self.ended_well += usize::from(status.success());
                *slot = None;
            }
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in self.all.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn spawn(place: &Place, number: usize) -> Child {
    let number = number.to_string();
    let run = ["run", "--ttl", "60s", "--grace", "100ms", "counter", "--", "sh", "increment", &number];
    let mut command: Command = place.leasehold(&run);
    command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap()
}

fn counter(place: &Place) -> usize {
    fs::read_to_string(place.path("counter")).unwrap().trim().parse().unwrap()
}

/// Nobody does anything after the next one has started; whoever was not killed has ended by then; fences grow.
fn check_log(log: &[String], killed: &BTreeSet<usize>) {
    let mut last_line: HashMap<usize, usize> = HashMap::new();
    let mut starts: Vec<(usize, usize, u64)> = Vec::new();
    for (at, line) in log.iter().enumerate() {
        let words: Vec<&str> = line.split(' ').collect();
        let number: usize = words[1].parse().unwrap();
        last_line.insert(number, at);
        if words[0] == "start" {
            starts.push((at, number, words[2].parse().unwrap()));
        }
    }
    for pair in starts.windows(2) {
        let [(_, before, fence), (start, after, next_fence)] = [pair[0], pair[1]];
        let last = last_line[&before];
        assert!(last < start, "{before} was alive after {after} had started: {:?}", &log[last]);
        assert!(next_fence > fence, "the fence of {after} is not greater than that of {before}");
        let has_ended = log[last] == format!("end {before}");
        assert!(has_ended || killed.contains(&before), "{before} was not killed and has not ended");
    }
}

/// Numbers nobody can foresee; which ones does not matter, so they need not be repeatable.
struct Random(RandomState, u64);

impl Random {
    fn new() -> Self {
        Self(RandomState::new(), 0)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.1 += 1;
        self.0.hash_one(self.1) as usize % limit
    }
}
