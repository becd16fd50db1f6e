//! One Redis that is told to throw away whatever it likes when memory is short (`allkeys-random`): a lock in use may go
//! with it. This row shows what that costs; on the other rows short memory refuses writes (`noeviction`).

use std::{io, time::Duration};

use leasehold_testkit::servers::{
    StartError,
    redis::{Keeps, Redis, Setup},
};

use super::{Pack, redis_single};
use crate::{clock::rest, dice::Dice};

const EVICT: &str = "keys evicted";

struct Evicting(Redis);

pub(super) fn start() -> Result<Box<dyn Pack>, StartError> {
    let setup = Setup::new().with_keeps(Keeps::EveryWrite).with_setting("maxmemory-policy", "allkeys-random");
    Ok(Box::new(Evicting(Redis::start_as(&setup)?)))
}

impl Pack for Evicting {
    fn url(&self) -> String {
        self.0.url()
    }

    fn version(&self) -> String {
        redis_single::version(&self.0)
    }

    fn faults(&self) -> &'static [&'static str] {
        &[EVICT]
    }

    /// Every key is one too many, for an instant.
    fn inflict(&mut self, _fault: &str, _lease: Duration, dice: &mut Dice) -> io::Result<()> {
        for _ in 0..=dice.below(10) {
            redis_single::limit_memory(&self.0, "1")?;
            rest(dice.between(Duration::from_millis(1), Duration::from_millis(20)));
            redis_single::limit_memory(&self.0, "0")?;
            rest(dice.between(Duration::from_millis(10), Duration::from_millis(150)));
        }
        Ok(())
    }

    fn leftovers(&self, killed: &[String]) -> io::Result<Vec<String>> {
        redis_single::leftovers(&self.0, killed)
    }
}
