//! One Redis that is well, behind a wire that is not: connections break, fall silent, are slow, lose answers, and
//! deliver requests long after whoever sent them has given up.

use std::{
    io,
    time::{Duration, Instant},
};

use leasehold_testkit::{
    faultline::{Faultline, Hit, Speech},
    servers::{StartError, redis::Redis},
};

use super::{Pack, redis_single};
use crate::{clock::rest, dice::Dice};

const CUT: &str = "connections cut";
const REFUSE: &str = "connections cut and refused";
const SHORT: &str = "wire silent for less than a lease";
const LONG: &str = "wire silent for more than a lease";
const SLOW: &str = "wire slow";
const HALF: &str = "connections half closed";
const SWALLOW: &str = "answers lost";
const LATE: &str = "requests delivered late";

/// What every request about a lock contains: all of them are scripts.
const SCRIPT: &[u8] = b"EVALSHA";

/// How long to wait for a request that a verb can act on.
const PATIENCE: Duration = Duration::from_secs(3);

struct Wire {
    /// Before the server: it ends first.
    line: Faultline,
    redis: Redis,
}

pub(super) fn start() -> Result<Box<dyn Pack>, StartError> {
    let redis = Redis::start_durable()?;
    let line = Faultline::before(redis.address(), Speech::Resp)?;
    Ok(Box::new(Wire { line, redis }))
}

impl Pack for Wire {
    fn url(&self) -> String {
        format!("redis://{}", self.line.address())
    }

    fn version(&self) -> String {
        redis_single::version(&self.redis)
    }

    fn faults(&self) -> &'static [&'static str] {
        &[CUT, REFUSE, SHORT, LONG, SLOW, HALF, SWALLOW, LATE]
    }

    fn inflict(&mut self, fault: &str, lease: Duration, dice: &mut Dice) -> io::Result<()> {
        match fault {
            CUT => self.again(dice, Faultline::cut),
            HALF => self.again(dice, Faultline::half_close),
            REFUSE => {
                self.line.refuse(true);
                self.line.cut();
                rest(dice.between(lease / 4, lease * 3 / 2));
                self.line.refuse(false);
            }
            SHORT => self.stall(dice.between(lease / 10, lease * 3 / 4)),
            LONG => self.stall(dice.between(lease, lease * 2)),
            SLOW => {
                self.line.delay(dice.between(Duration::from_millis(5), lease / 8));
                rest(dice.between(lease / 2, lease * 2));
                self.line.delay(Duration::ZERO);
            }
            SWALLOW => {
                let times = 1 + dice.below(20) as usize;
                await_hits(&self.line.swallow_reply(SCRIPT, times), times);
            }
            _ => self.deliver_late(lease, dice),
        }
        Ok(())
    }

    fn leftovers(&self, killed: &[String]) -> io::Result<Vec<String>> {
        redis_single::leftovers(&self.redis, killed)
    }
}

impl Wire {
    fn stall(&self, span: Duration) {
        self.line.stall(true);
        rest(span);
        self.line.stall(false);
    }

    fn again(&self, dice: &mut Dice, verb: fn(&Faultline)) {
        for _ in 0..=dice.below(5) {
            verb(&self.line);
            rest(dice.between(Duration::from_millis(10), Duration::from_millis(150)));
        }
    }

    /// Some requests are kept until their senders have given up, and most of their leases are over.
    fn deliver_late(&self, lease: Duration, dice: &mut Dice) {
        let count = 1 + dice.below(8);
        let held: Vec<_> = (0..count).map(|_| self.line.hold_request(SCRIPT)).collect();
        rest(dice.between(lease / 2, lease * 2));
        for request in held {
            request.deliver();
            rest(dice.between(Duration::ZERO, Duration::from_millis(50)));
        }
    }
}

/// Until it has happened so often, or nobody asks any more.
fn await_hits(hit: &Hit, times: usize) {
    let end = Instant::now() + PATIENCE;
    while hit.times() < times && Instant::now() < end {
        rest(Duration::from_millis(5));
    }
}
