//! Where ids come from: a counter, and the cell that says how far its time is given out.
//!
//! Before an id is made, the time it bears is reserved in the cell of the machine number, by compare-and-set and ahead in
//! blocks. Whoever gets the number later begins where the last block ended. So no id is made twice, and none below an
//! earlier one of that number, whatever clocks, pauses and leases do: it rests on that write alone. The lock of the number
//! keeps others away from it; its fence decides who is the later one.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use super::{
    Engine,
    counter::{Counter, SEQUENCE, Stamp},
    sighting::Sighting,
};
use crate::{
    backend::{CellWrite, Expect, Loss},
    error::{Error, ErrorKind, Operation, Result},
    id::ClaimId,
    key::Key,
    sync::Mutex,
};

/// What the names of these cells begin with.
const CELLS: &str = "ids:";

/// Where the time of ids begins: the first of January 2024, in UTC.
pub(crate) const EPOCH: Duration = Duration::from_secs(1_704_067_200);

/// Bits of the time.
const TIME: u32 = 41;

/// How much is reserved at once, in milliseconds: so often the store is asked, at most, and by so much the first ids of a
/// successor may be ahead of the clock.
const REACH: u64 = 10_000;

/// How often a reservation is tried against others, and against answers that are lost.
const TRIES: u32 = 8;

/// The ids of one machine number, for as long as it is held.
#[derive(Debug)]
pub(crate) struct Mint {
    engine: Arc<Engine>,
    cell: String,
    fence: u64,
    id: ClaimId,
    counter: Mutex<(Counter, Sighting)>,
    /// One reserves for all.
    reserving: tokio::sync::Mutex<()>,
}

impl Mint {
    /// Takes the number over from whoever had it, now that its lock is held.
    pub(crate) async fn open(engine: &Arc<Engine>, key: &Key, fence: u64, id: ClaimId) -> Result<Self> {
        let cell = [CELLS, key.full()].concat();
        let sighting = engine.sight().await?;
        let counter = Mutex::new((Counter::default(), sighting));
        let mint = Self {
            engine: engine.clone(),
            cell,
            fence,
            id,
            counter,
            reserving: tokio::sync::Mutex::default(),
        };
        mint.reserve(sighting).await?;
        Ok(mint)
    }

    /// The next, if `check` lets it. The store is asked only when what was reserved is used up.
    pub(crate) async fn next(&self, check: impl Fn() -> Result<()>) -> Result<Stamp> {
        check()?;
        if let Some(stamp) = self.draw() {
            return Ok(stamp);
        }
        let _alone = self.reserving.lock().await;
        loop {
            check()?;
            if let Some(stamp) = self.draw() {
                return Ok(stamp);
            }
            self.reserve(self.engine.sight().await?).await?;
        }
    }

    fn draw(&self) -> Option<Stamp> {
        let mut counter = self.counter.lock().unwrap_or_else(PoisonError::into_inner);
        let now = millis(counter.1.time_at(self.engine.clock.now()));
        counter.0.draw(now)
    }

    /// Reserves the next block of time.
    async fn reserve(&self, sighting: Sighting) -> Result<()> {
        for _ in 0..TRIES {
            let cell = self.engine.backend.read_cell(&self.cell).await?;
            let expect = cell.as_ref().map_or(Expect::Absent, |cell| Expect::Version(cell.version));
            let block = cell.map(|cell| Block::read(&cell.value)).transpose()?;
            let floor = self.floor(block.as_ref())?;
            // Never less than is there: by a clock that was set back since, we may use what we reserved before.
            let taken = block.map_or(0, |block| block.until);
            let until = self.wanted(sighting).max(floor).saturating_add(REACH).max(taken);
            if until >= 1 << TIME {
                return Err(Error::new(ErrorKind::Unsupported, Operation::Ids, TOO_LATE));
            }
            let block = Block { until, fence: self.fence, id: self.id };
            match self.engine.backend.write_cell(&self.cell, expect, &block.write(), None).await {
                Ok(CellWrite::Written(_)) => {
                    self.reserved(floor, until, sighting);
                    return Ok(());
                }
                Ok(CellWrite::Conflict) => {}
                Err(error) if error.kind() == ErrorKind::Indeterminate => {
                    tracing::debug!(%error, "looking whether the time of ids was reserved");
                }
                Err(error) => return Err(error),
            }
        }
        let message = "others change the reservation all the time, or the store loses its answers; try again";
        Err(Error::new(ErrorKind::Unavailable, Operation::Ids, message))
    }

    /// Where we may begin: after all that another has reserved.
    fn floor(&self, block: Option<&Block>) -> Result<u64> {
        match block {
            None => Ok(0),
            Some(block) if block.id == self.id => Ok(0),
            Some(block) if block.fence > self.fence => Err(Error::from(Loss::Gone)),
            Some(block) => Ok(block.until),
        }
    }

    fn wanted(&self, sighting: Sighting) -> u64 {
        let counter = self.counter.lock().unwrap_or_else(PoisonError::into_inner);
        counter.0.wanted(millis(sighting.time))
    }

    fn reserved(&self, floor: u64, until: u64, sighting: Sighting) {
        let mut counter = self.counter.lock().unwrap_or_else(PoisonError::into_inner);
        counter.0.reserved(floor, until);
        counter.1 = sighting;
    }
}

const TOO_LATE: &str =
    "the clock, or that of one who made ids before, is beyond the year 2093, where ids end; set it right";

/// Milliseconds of the time of ids. A clock from before its beginning shows its beginning.
fn millis(since_1970: Duration) -> u64 {
    let passed = since_1970.saturating_sub(EPOCH).as_millis();
    // What does not fit is refused when it is reserved; shifted by the sequence it must not overflow before.
    passed.try_into().unwrap_or(u64::MAX).min(u64::MAX >> (SEQUENCE + 1))
}

/// `UNTIL FENCE ID`: time is given out until then, by this holder.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    until: u64,
    fence: u64,
    id: ClaimId,
}

impl Block {
    fn write(&self) -> Vec<u8> {
        format!("{} {} {}", self.until, self.fence, self.id).into_bytes()
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        let parsed = std::str::from_utf8(bytes).ok().and_then(|text| {
            let mut words = text.split(' ');
            let (until, fence, id) = (words.next()?, words.next()?, words.next()?);
            Some(Self { until: until.parse().ok()?, fence: fence.parse().ok()?, id: id.parse().ok()? })
        });
        // To begin anew would be to make ids again that were made already.
        parsed.ok_or_else(|| {
            let message = "the store holds something else where the reservation of this machine number was";
            Error::new(ErrorKind::Internal, Operation::Ids, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{ClaimIds, ClientId};

    #[test]
    fn a_block_survives_its_bytes_and_nothing_else_is_one() {
        let block = Block { until: u64::MAX, fence: 7, id: ClaimIds::new(ClientId::random()).next() };
        assert_eq!(Block::read(&block.write()).unwrap(), block);
        for bytes in [&b""[..], b"1", b"1 2", b"1 2 x", b"x 2 3", &[255, 0]] {
            assert_eq!(Block::read(bytes).unwrap_err().kind(), ErrorKind::Internal);
        }
    }

    #[test]
    fn clocks_beyond_reason_do_not_overflow() {
        assert_eq!(millis(Duration::ZERO), 0);
        assert_eq!(millis(EPOCH + Duration::from_millis(5)), 5);
        let mut counter = Counter::default();
        counter.reserved(0, u64::MAX);
        assert!(counter.draw(millis(Duration::MAX)).is_some());
    }
}
