//! One Redis that keeps nothing: after a restart every lock is free, whoever holds it. This row shows what that costs,
//! and that fences hold all the same.

use std::{io, time::Duration};

use leasehold_testkit::servers::{StartError, redis::Redis};

use super::{Pack, redis_single};
use crate::dice::Dice;

const KILL: &str = "server killed, restarted empty";

struct Empty(Redis);

pub(super) fn start() -> Result<Box<dyn Pack>, StartError> {
    Ok(Box::new(Empty(Redis::start()?)))
}

impl Pack for Empty {
    fn url(&self) -> String {
        self.0.url()
    }

    fn version(&self) -> String {
        redis_single::version(&self.0)
    }

    fn faults(&self) -> &'static [&'static str] {
        &[KILL]
    }

    fn inflict(&mut self, _fault: &str, _lease: Duration, dice: &mut Dice) -> io::Result<()> {
        redis_single::kill(&mut self.0, dice)
    }

    fn leftovers(&self, killed: &[String]) -> io::Result<Vec<String>> {
        redis_single::leftovers(&self.0, killed)
    }
}
