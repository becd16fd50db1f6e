//! One memcached, which keeps nothing and has little room: it is restarted empty, a stranger's items drive out ours, and it
//! is stopped and goes on with the time it had. This row shows what that costs.

use std::{io, time::Duration};

use leasehold_testkit::servers::{StartError, memcached::Memcached};

use super::Pack;
use crate::{clock::rest, dice::Dice};

const RESTART: &str = "server killed, restarted empty";
const EVICT: &str = "items evicted";
const PAUSE: &str = "server paused";

/// Megabytes: the least it takes.
const ROOM: [&str; 2] = ["-m", "2"];

/// Sizes of a stranger's items, as records of ours have them, and how many of each there is no room for.
const SIZES: [usize; 9] = [128, 192, 256, 320, 384, 448, 512, 640, 768];
const ITEMS: usize = 6000;

/// Nothing of ours is to be kept for longer, in seconds: the lease, and until a name that begins anew begins above its fence.
const STAYS: u64 = 60;

struct Cache(Memcached);

pub(super) fn start() -> Result<Box<dyn Pack>, StartError> {
    Ok(Box::new(Cache(Memcached::start_with(&ROOM)?)))
}

impl Pack for Cache {
    fn url(&self) -> String {
        self.0.url()
    }

    fn version(&self) -> String {
        let said = self.0.command("version").unwrap_or_default();
        format!("memcached {}", said.strip_prefix("VERSION ").unwrap_or("of unknown version"))
    }

    fn faults(&self) -> &'static [&'static str] {
        &[RESTART, EVICT, PAUSE]
    }

    fn inflict(&mut self, fault: &str, lease: Duration, dice: &mut Dice) -> io::Result<()> {
        match fault {
            RESTART => {
                self.0.crash()?;
                rest(dice.between(Duration::ZERO, Duration::from_millis(1500)));
                self.0.restart().map_err(io::Error::other)
            }
            EVICT => self.0.fill(&SIZES, ITEMS),
            _ => {
                self.0.pause()?;
                rest(dice.between(lease / 4, lease * 2));
                self.0.resume()
            }
        }
    }

    /// What has no end, or a late one.
    fn leftovers(&self, _killed: &[String]) -> io::Result<Vec<String>> {
        let now: u64 = self.0.count("time")?;
        let ends = |item: &str| {
            let end = item.split(" exp=").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
            end.is_some_and(|end| end < now + STAYS)
        };
        let items = self.0.lines("lru_crawler metadump hash")?;
        let ours = items.into_iter().filter(|item| item.starts_with("key=leasehold%3Arecord"));
        Ok(ours.filter(|item| !ends(item)).collect())
    }
}
