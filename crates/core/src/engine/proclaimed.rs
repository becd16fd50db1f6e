//! What a leader says of itself, in a cell beside the lock it holds: written only by who leads, never over what a later
//! leader wrote, and gone when it resigns.
//!
//! Who leads is what the lock says. A value counts only with the acquisition it was written for, so one that a dead
//! leader left behind is nobody's.

use std::time::Duration;

use super::Engine;
use crate::{
    backend::{Cell, CellWrite, Expect, Loss},
    error::{Error, ErrorKind, Operation, Result},
    id::ClaimId,
    key::Key,
};

/// How often a write is tried against others: each conflict is another leader's write, or the first half of our own.
const TRIES: u32 = 8;

/// The life of a cell that is withdrawn: the least there is.
const AT_ONCE: Duration = Duration::from_millis(1);

/// The cell of an election.
#[derive(Debug)]
pub(crate) struct Proclaimed<'a> {
    engine: &'a Engine,
    cell: String,
}

/// A value, and who proclaimed it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) fence: u64,
    pub(crate) id: ClaimId,
    /// `None` once it is taken back.
    pub(crate) value: Option<Vec<u8>>,
}

impl Proclaimed<'_> {
    /// What the names of these cells begin with.
    pub(crate) const CELLS: &'static str = "election:";
}

impl<'a> Proclaimed<'a> {
    pub(crate) fn of(engine: &'a Engine, key: &Key) -> Self {
        Self { engine, cell: [Self::CELLS, key.full()].concat() }
    }

    /// What was proclaimed last, by whomever.
    pub(crate) async fn read(&self) -> Result<Option<Said>> {
        Ok(self.cell().await?.and_then(|cell| Said::read(&cell.value)))
    }

    /// Proclaims, unless a later leader has: that is a loss.
    pub(crate) async fn write(&self, value: &Said) -> Result<()> {
        self.replace(value, None).await
    }

    /// Takes back what this leader proclaimed. Until the cell is gone it says that there is no value, not an empty one.
    pub(crate) async fn withdraw(&self, fence: u64, id: ClaimId) -> Result<()> {
        self.replace(&Said { fence, id, value: None }, Some(AT_ONCE)).await
    }

    async fn replace(&self, value: &Said, ttl: Option<Duration>) -> Result<()> {
        for _ in 0..TRIES {
            let expect = match self.cell().await? {
                None if ttl.is_some() => return Ok(()),
                None => Expect::Absent,
                Some(cell) if Said::read(&cell.value).is_some_and(|there| there.fence > value.fence) => {
                    return Err(Error::from(Loss::Gone));
                }
                Some(cell) => Expect::Version(cell.version),
            };
            let written = self.engine.backend.write_cell(&self.cell, expect, &value.write(), ttl).await?;
            if let CellWrite::Written(_) = written {
                return Ok(());
            }
        }
        let message = "others change the value of this election all the time; try again";
        Err(Error::new(ErrorKind::Unavailable, Operation::Cell, message))
    }

    async fn cell(&self) -> Result<Option<Cell>> {
        self.engine.backend.read_cell(&self.cell).await
    }
}

/// `FENCE ID` in a line of its own, then the value as it is; without the end of that line, no value.
impl Said {
    fn write(&self) -> Vec<u8> {
        let mut bytes = format!("{} {}", self.fence, self.id).into_bytes();
        if let Some(value) = &self.value {
            bytes.push(b'\n');
            bytes.extend_from_slice(value);
        }
        bytes
    }

    /// `None` if somebody else wrote something else there.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (line, value) = match bytes.iter().position(|byte| *byte == b'\n') {
            Some(end) => (&bytes[..end], Some(bytes[end + 1..].to_vec())),
            None => (bytes, None),
        };
        let (fence, id) = std::str::from_utf8(line).ok()?.split_once(' ')?;
        Some(Self { fence: fence.parse().ok()?, id: id.parse().ok()?, value })
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, option, prelude::any, proptest, test_runner::Config};

    use super::*;
    use crate::id::{ClaimIds, ClientId};

    proptest! {
        #![proptest_config(Config { cases: 500, failure_persistence: None, ..Config::default() })]

        #[test]
        fn any_value_survives_its_bytes(fence in any::<u64>(), value in option::of(vec(any::<u8>(), 0..100))) {
            let value = Said { fence, id: ClaimIds::new(ClientId::random()).next(), value };
            assert_eq!(Said::read(&value.write()), Some(value));
        }

        #[test]
        fn no_bytes_make_reading_a_value_panic(bytes in vec(any::<u8>(), 0..100)) {
            let _ = Said::read(&bytes);
        }
    }
}
