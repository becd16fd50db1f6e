//! Ids that are unique across a fleet, made without asking anybody: each process holds a machine number by a lease.

use std::{fmt, ops::RangeInclusive, str::FromStr, time::Duration};

use super::{Guard, Lock};
use crate::{
    backend::Loss,
    call_site::CallSite,
    client::Client,
    engine::{
        counter::{SEQUENCE, Stamp},
        mint::{self, Mint},
    },
    error::{Error, ErrorKind, Operation, Result},
    key::Key,
    span::Span,
};

/// Bits of the machine number.
const MACHINE: u32 = 10;

/// The greatest machine number.
const LAST: u16 = (1 << MACHINE) - 1;

/// A unique id: 41 bits of time in milliseconds since the first of January 2024 (UTC), 10 bits of machine number, 12 bits of
/// sequence. The highest bit is never set, so it fits where only signed numbers do.
///
/// It reads and writes itself as a decimal number, and as text in serde, since JavaScript cannot hold it as a number.
///
/// Anybody who sees an id sees when, and about how often, ids are made: it is no secret and guards none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u64);

impl Id {
    fn new(machine: u16, stamp: Stamp) -> Self {
        let (time, sequence) = (stamp >> SEQUENCE, stamp & ((1 << SEQUENCE) - 1));
        Self((time << (MACHINE + SEQUENCE)) | (u64::from(machine) << SEQUENCE) | sequence)
    }

    /// The number.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// About when it was made, as the time since 1970. It may be ahead of the clock: see [`Ids`].
    pub fn time(self) -> Duration {
        mint::EPOCH + Duration::from_millis(self.0 >> (MACHINE + SEQUENCE))
    }

    /// The machine number of who made it.
    pub const fn machine(self) -> u16 {
        (self.0 >> SEQUENCE) as u16 & LAST
    }

    /// Its place among those of one millisecond and machine number.
    pub const fn sequence(self) -> u16 {
        self.0 as u16 & ((1 << SEQUENCE) - 1)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Id {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(number) if is_decimal && number <= u64::MAX >> 1 => Ok(Self(number)),
            _ => Err(Error::config(
                Operation::Parse,
                "this is not an id; write it as a decimal number below 2^63",
            )),
        }
    }
}

impl From<Id> for u64 {
    fn from(id: Id) -> Self {
        id.0
    }
}

/// Ids of one name: unique among all processes that make ids under it in the same store.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), leasehold_core::Error> {
/// # use leasehold_core::{Client, Id, backend::Memory};
/// # let locks = Client::new(Memory::new());
/// let ids = locks.ids("orders").claim().await?;       // once per process: a machine number, held by a lease
/// let (one, other) = (ids.next().await?, ids.next().await?);
/// assert!(one < other);
/// assert_eq!(one.to_string().parse::<Id>()?, one);
/// assert_eq!((one.machine(), other.machine()), (ids.machine(), ids.machine()));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "no ids are made until a machine number is claimed"]
pub struct IdSpace {
    client: Client,
    name: String,
    ttl: Span,
    machines: RangeInclusive<u16>,
    location: CallSite,
}

impl IdSpace {
    #[track_caller]
    pub(crate) fn new(client: &Client, name: &str) -> Self {
        let (name, ttl) = (name.to_owned(), client.ttl().into());
        Self { client: client.clone(), name, ttl, machines: 0..=LAST, location: CallSite::caller() }
    }

    /// The lease of the machine number: how soon another may have it after this process has died.
    pub fn ttl(mut self, ttl: impl Into<Span>) -> Self {
        self.ttl = ttl.into();
        self
    }

    /// Only these machine numbers, of 0 to 1023: how fleets that share no store keep out of each other's way.
    pub fn machines(mut self, machines: RangeInclusive<u16>) -> Self {
        self.machines = machines;
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes a free machine number. One is found by the first try if few are in use; a fleet that uses most of them tries
    /// several.
    ///
    /// # Errors
    /// `Busy` if all numbers are taken; `Unsupported` by a store without cells; `Config` if the name, the lease or the range
    /// is none; any other kind as the store has it.
    ///
    /// # Cancel safety
    /// What it took is given back.
    pub async fn claim(&self) -> Result<Ids> {
        self.serves()?;
        let about = |error: Error| error.during(Operation::Ids).about(&self.name);
        Key::new(self.client.prefix(), &self.name).map_err(about)?;
        let mut unusable = None;
        for machine in self.candidates()? {
            let lock = self.lock(machine);
            let Some(guard) = lock.try_acquire().await.map_err(about)? else { continue };
            let engine = self.client.engine();
            match Mint::open(engine, &lock.key()?, guard.fence(), guard.id()).await {
                Ok(mint) => return Ok(Ids { name: self.name.clone(), machine, guard, mint }),
                // The number is spoilt by what stands in its cell; the others are not.
                Err(error) if matches!(error.kind(), ErrorKind::Internal | ErrorKind::Unsupported) => {
                    unusable = Some(error);
                }
                Err(error) => return Err(about(error)),
            }
        }
        Err(about(unusable.unwrap_or_else(|| Error::new(ErrorKind::Busy, Operation::Ids, self.taken()))))
    }

    /// The lock of a machine number.
    fn lock(&self, machine: u16) -> Lock {
        let lock = Lock::exclusive(&self.client, &format!("ids:{}:{machine}", self.name));
        lock.ttl(self.ttl.clone()).asked_at(self.location.clone())
    }

    /// All numbers, beginning anywhere: those who come together do not all ask for the same one.
    fn candidates(&self) -> Result<impl Iterator<Item = u16>> {
        let (first, last) = (*self.machines.start(), *self.machines.end());
        if first > last || last > LAST {
            let message = format!("machine numbers {first} to {last} are none; they go from 0 to {LAST}");
            return Err(Error::config(Operation::Ids, message).about(&self.name));
        }
        let count = last - first + 1;
        let begin = getrandom::u32().unwrap_or(0) as u16 % count;
        Ok((0..count).map(move |step| first + (begin + step) % count))
    }

    fn taken(&self) -> String {
        let count = self.machines.len();
        format!(
            "all {count} machine numbers are taken; release some, or divide those who make ids among several names"
        )
    }

    fn serves(&self) -> Result<()> {
        let info = self.client.info();
        if info.capabilities.cells {
            return Ok(());
        }
        let message = format!(
            "{} keeps no values, so it cannot tell which ids were made; use another store",
            info.scheme
        );
        Err(Error::new(ErrorKind::Unsupported, Operation::Cell, message).about(&self.name))
    }
}

/// Makes ids, for as long as its machine number is held. Share it by reference; one per process is enough.
///
/// # What it promises
/// No id is made twice under one name of one store. Those of one generator grow. Whoever gets its machine number later makes
/// only greater ones than it did. None of this depends on clocks: the time that ids bear is reserved in the store, ten
/// seconds ahead, before they are made.
///
/// The time is that of the store's clock, where it has one, looked at whenever time is reserved; in between, this machine's
/// boot clock counts, which nobody sets. When the clock was set back, or more than 4096 ids are made in a millisecond, the ids
/// borrow from the milliseconds to come and are ahead of the clock until it has caught up; so are the first ones of
/// whoever takes a number over, by ten seconds at most.
///
/// # What it does not promise
/// Ids of different machine numbers are not in the order in which they were made; they are so only as far as milliseconds
/// tell, and as the above lets them. An id is not secret: it tells when it was made and where. A store that forgets its cells
/// (one that is flushed, or restored from a backup) forgets what was reserved; then the clock alone keeps ids apart.
#[derive(Debug)]
#[must_use = "if unused the machine number is given back at once"]
pub struct Ids {
    name: String,
    machine: u16,
    guard: Guard,
    mint: Mint,
}

impl Ids {
    /// The next id. Asks the store only when the time that was reserved is over: every ten seconds, and after a longer rest.
    ///
    /// # Errors
    /// `Lost` once the machine number is lost, for good: [claim](IdSpace::claim) another. Others as the store has them; ask
    /// again.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it but, perhaps, time that was reserved.
    pub async fn next(&self) -> Result<Id> {
        let stamp = self.mint.next(|| self.guard.check()).await;
        let stamp = stamp.map_err(|error| error.during(Operation::Ids).about(&self.name))?;
        Ok(Id::new(self.machine, stamp))
    }

    /// The machine number that its ids bear.
    pub fn machine(&self) -> u16 {
        self.machine
    }

    /// The guard of the lock that holds the machine number.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Completes when the machine number is lost, and says how.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn lost(&self) -> Loss {
        self.guard.lost().await
    }

    /// Gives the machine number back.
    ///
    /// # Errors
    /// As for [`Guard::release`].
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing: the release goes on in the background.
    pub async fn release(self) -> Result<()> {
        self.guard.release().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_made_of_its_parts() {
        let id = Id::new(1023, (5 << SEQUENCE) | 4095);
        assert_eq!((id.machine(), id.sequence()), (1023, 4095));
        assert_eq!(id.time(), mint::EPOCH + Duration::from_millis(5));
        assert_eq!(id.as_u64(), (5 << 22) | (1023 << 12) | 4095);
        let last = Id::new(LAST, (1 << 53) - 1);
        assert_eq!(last.as_u64(), u64::MAX >> 1, "the highest bit is never set");
    }

    #[test]
    fn an_id_survives_its_text_and_nothing_else_is_one() {
        let id = Id::new(17, (123_456_789_012 << SEQUENCE) + 34);
        assert_eq!(id.to_string().parse::<Id>().unwrap(), id);
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(json, format!("\"{id}\""));
        assert_eq!(serde_json::from_str::<Id>(&json).unwrap(), id);
        for text in ["", "+1", "-1", "1.0", "x", " 1", "9223372036854775808", "99999999999999999999"] {
            assert!(text.parse::<Id>().is_err(), "{text:?}");
        }
    }
}
