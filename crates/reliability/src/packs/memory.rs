//! The store in memory: one process, in which everything happens at once. Nothing of it outlives that process, so what
//! it leaves behind is what the worker finds in it at its end, and says in its last words.

use std::{io, time::Duration};

use leasehold_testkit::servers::StartError;

use super::Pack;
use crate::dice::Dice;

struct Memory;

#[expect(clippy::unnecessary_wraps, reason = "stores with a server may fail to start")]
pub(super) fn start() -> Result<Box<dyn Pack>, StartError> {
    Ok(Box::new(Memory))
}

impl Pack for Memory {
    fn url(&self) -> String {
        "memory:".to_owned()
    }

    fn version(&self) -> String {
        "this build".to_owned()
    }

    fn faults(&self) -> &'static [&'static str] {
        &[]
    }

    fn inflict(&mut self, _fault: &str, _lease: Duration, _dice: &mut Dice) -> io::Result<()> {
        Ok(())
    }

    fn leftovers(&self, _killed: &[String]) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
}
