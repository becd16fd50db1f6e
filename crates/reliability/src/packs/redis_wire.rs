//! One Redis that is well, behind wires that are not: connections break, fall silent, are slow, lose answers, and
//! deliver requests long after whoever sent them has given up.
//!
//! Each worker has a wire of its own. What befalls one alone parts it from the store while all others go on: then
//! somebody else may have what it believes to hold.

use std::{
    io,
    time::{Duration, Instant},
};

use leasehold_testkit::{
    faultline::{Faultline, Hit, Speech},
    servers::{StartError, redis::Redis},
};

use super::{Pack, WORKERS, redis_single};
use crate::{clock::rest, dice::Dice};

const CUT: &str = "connections cut";
const REFUSE: &str = "connections cut and refused";
const SHORT: &str = "wire silent for less than a lease";
const LONG: &str = "wire silent for more than a lease";
const SLOW: &str = "wire slow";
const HALF: &str = "connections half closed";
const SWALLOW: &str = "answers lost";
const LATE: &str = "requests delivered late";

const CUT_ONE: &str = "one worker cut off and refused";
const STALL_ONE: &str = "one worker's wire silent for more than a lease";
const DEAFEN_ONE: &str = "one worker's answers lost, again and again";
const LATE_ONE: &str = "one worker's requests delivered late";

/// What every request about a lock contains: all of them are scripts.
const SCRIPT: &[u8] = b"EVALSHA";

/// How long to wait for a request that a verb can act on.
const PATIENCE: Duration = Duration::from_secs(3);

struct Wires {
    /// One for each place; before the server, because they end first.
    lines: Vec<Faultline>,
    redis: Redis,
}

pub(super) fn start() -> Result<Box<dyn Pack>, StartError> {
    let redis = Redis::start_durable()?;
    let lines = (0..WORKERS).map(|_| Faultline::before(redis.address(), Speech::Resp));
    let lines = lines.collect::<io::Result<_>>()?;
    Ok(Box::new(Wires { lines, redis }))
}

impl Pack for Wires {
    fn url(&self) -> String {
        self.redis.url()
    }

    fn url_for(&self, place: usize) -> String {
        format!("redis://{}", self.lines[place % self.lines.len()].address())
    }

    fn version(&self) -> String {
        redis_single::version(&self.redis)
    }

    fn faults(&self) -> &'static [&'static str] {
        &[CUT, REFUSE, SHORT, LONG, SLOW, HALF, SWALLOW, LATE, CUT_ONE, STALL_ONE, DEAFEN_ONE, LATE_ONE]
    }

    fn inflict(&mut self, fault: &str, lease: Duration, dice: &mut Dice) -> io::Result<()> {
        let one = std::slice::from_ref(dice.choose(&self.lines));
        let all = &self.lines[..];
        match fault {
            CUT => again(all, dice, Faultline::cut),
            HALF => again(all, dice, Faultline::half_close),
            REFUSE => refuse(all, dice.between(lease / 4, lease * 3 / 2)),
            SHORT => stall(all, dice.between(lease / 10, lease * 3 / 4)),
            LONG => stall(all, dice.between(lease, lease * 2)),
            SLOW => {
                let delay = dice.between(Duration::from_millis(5), lease / 8);
                each(all, |line| line.delay(delay));
                rest(dice.between(lease / 2, lease * 2));
                each(all, |line| line.delay(Duration::ZERO));
            }
            SWALLOW => swallow(all, 1 + dice.below(3) as usize),
            LATE => deliver_late(all, lease, dice),
            // Long enough that its leases end meanwhile, and others get what it had.
            CUT_ONE => refuse(one, dice.between(lease / 2, lease * 2)),
            STALL_ONE => stall(one, dice.between(lease, lease * 2)),
            DEAFEN_ONE => swallow(one, 5 + dice.below(20) as usize),
            _ => deliver_late(one, lease, dice),
        }
        Ok(())
    }

    fn leftovers(&self, killed: &[String]) -> io::Result<Vec<String>> {
        redis_single::leftovers(&self.redis, killed)
    }
}

fn each(lines: &[Faultline], verb: impl Fn(&Faultline)) {
    for line in lines {
        verb(line);
    }
}

fn refuse(lines: &[Faultline], span: Duration) {
    each(lines, |line| line.refuse(true));
    each(lines, Faultline::cut);
    rest(span);
    each(lines, |line| line.refuse(false));
}

fn stall(lines: &[Faultline], span: Duration) {
    each(lines, |line| line.stall(true));
    rest(span);
    each(lines, |line| line.stall(false));
}

fn again(lines: &[Faultline], dice: &mut Dice, verb: fn(&Faultline)) {
    for _ in 0..=dice.below(5) {
        each(lines, verb);
        rest(dice.between(Duration::from_millis(10), Duration::from_millis(150)));
    }
}

/// So many answers of each are lost, while it still asks.
fn swallow(lines: &[Faultline], times: usize) {
    let hits: Vec<Hit> = lines.iter().map(|line| line.swallow_reply(SCRIPT, times)).collect();
    let end = Instant::now() + PATIENCE;
    while hits.iter().any(|hit| hit.times() < times) && Instant::now() < end {
        rest(Duration::from_millis(5));
    }
}

/// Some requests of each are kept until their senders have given up, and most of their leases are over.
fn deliver_late(lines: &[Faultline], lease: Duration, dice: &mut Dice) {
    let count = 1 + dice.below(4);
    let held: Vec<_> = lines.iter().flat_map(|line| (0..count).map(|_| line.hold_request(SCRIPT))).collect();
    rest(dice.between(lease / 2, lease * 2));
    for request in held {
        request.deliver();
        rest(dice.between(Duration::ZERO, Duration::from_millis(20)));
    }
}
