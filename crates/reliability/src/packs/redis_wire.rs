//! One Redis that is well, behind wires that are not.

use std::{io, time::Duration};

use leasehold_testkit::{
    faultline::Speech,
    servers::{StartError, redis::Redis},
};

use super::{Pack, redis_single, wires::Wires};
use crate::dice::Dice;

/// All requests about locks are scripts.
const SCRIPT: &[u8] = b"EVALSHA";

struct Wired {
    /// Before the server, because they end first.
    wires: Wires,
    redis: Redis,
}

pub(super) fn start() -> Result<Box<dyn Pack>, StartError> {
    let redis = Redis::start_durable()?;
    Ok(Box::new(Wired { wires: Wires::to(redis.address(), Speech::Resp, SCRIPT)?, redis }))
}

impl Pack for Wired {
    fn url(&self) -> String {
        self.redis.url()
    }

    fn url_for(&self, place: usize) -> String {
        format!("redis://{}", self.wires.address(place))
    }

    fn version(&self) -> String {
        redis_single::version(&self.redis)
    }

    fn faults(&self) -> &'static [&'static str] {
        &Wires::FAULTS
    }

    fn inflict(&mut self, fault: &str, lease: Duration, dice: &mut Dice) -> io::Result<()> {
        self.wires.inflict(fault, lease, dice);
        Ok(())
    }

    fn leftovers(&self, killed: &[String]) -> io::Result<Vec<String>> {
        redis_single::leftovers(&self.redis, killed)
    }
}
