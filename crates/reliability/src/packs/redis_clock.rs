//! One Redis whose clock is set forward and back. Leases end by the server's clock, so a step forward ends them early:
//! this row shows what that costs. Nobody compares that clock with another, so a step back only makes leases longer.
//!
//! The clock is moved by a library that is preloaded into the server alone.

use std::{io, time::Duration};

use leasehold_testkit::servers::{
    StartError,
    redis::{Keeps, Redis, Setup},
    skew::Skew,
};

use super::{Pack, redis_single};
use crate::{clock::rest, dice::Dice};

const FORWARD: &str = "clock set forward";
const BACK: &str = "clock set back";

struct Skewed {
    redis: Redis,
    skew: Skew,
}

pub(super) fn start() -> Result<Box<dyn Pack>, StartError> {
    let skew = Skew::compile()?;
    let setup = Setup::new().with_keeps(Keeps::EveryWrite);
    let with_clock = |setup: Setup, (name, value)| setup.with_variable(name, value);
    let redis = Redis::start_as(&skew.variables().into_iter().fold(setup, with_clock))?;
    Ok(Box::new(Skewed { redis, skew }))
}

impl Pack for Skewed {
    fn url(&self) -> String {
        self.redis.url()
    }

    fn version(&self) -> String {
        redis_single::version(&self.redis)
    }

    fn faults(&self) -> &'static [&'static str] {
        &[FORWARD, BACK]
    }

    /// Wrong by up to two leases for a while, and then right again.
    fn inflict(&mut self, fault: &str, lease: Duration, dice: &mut Dice) -> io::Result<()> {
        let step = i64::try_from(dice.between(lease / 4, lease * 2).as_millis()).unwrap_or(0);
        self.skew.set(if fault == FORWARD { step } else { -step })?;
        rest(dice.between(Duration::ZERO, lease));
        self.skew.set(0)
    }

    fn leftovers(&self, killed: &[String]) -> io::Result<Vec<String>> {
        redis_single::leftovers(&self.redis, killed)
    }
}
