//! One Redis that loses nothing it answered: killed and restarted, stopped, its connections cut, its scripts forgotten,
//! its memory short.

use std::{io, time::Duration};

use leasehold_testkit::servers::{
    StartError,
    redis::{Redis, Reply},
};

use super::{Pack, again};
use crate::{clock::rest, dice::Dice};

const KILL: &str = "server killed and restarted";
const PAUSE: &str = "server paused";
const FLUSH: &str = "SCRIPT FLUSH";
const CUT: &str = "CLIENT KILL TYPE normal";
const DEAF: &str = "CLIENT KILL TYPE pubsub";
const STALL: &str = "CLIENT PAUSE";
const MEMORY: &str = "out of memory";

struct Single(Redis);

pub(super) fn start() -> Result<Box<dyn Pack>, StartError> {
    Ok(Box::new(Single(Redis::start_durable()?)))
}

impl Pack for Single {
    fn url(&self) -> String {
        self.0.url()
    }

    fn version(&self) -> String {
        version(&self.0)
    }

    fn faults(&self) -> &'static [&'static str] {
        &[KILL, PAUSE, FLUSH, CUT, DEAF, STALL, MEMORY]
    }

    fn inflict(&mut self, fault: &str, lease: Duration, dice: &mut Dice) -> io::Result<()> {
        match fault {
            KILL => kill(&mut self.0, dice),
            PAUSE => {
                self.0.pause()?;
                rest(dice.between(lease / 4, lease * 2));
                self.0.resume()
            }
            STALL => {
                let span = dice.between(lease / 4, lease * 3 / 2);
                self.0.demand(&["CLIENT", "PAUSE", &span.as_millis().to_string(), "ALL"])?;
                rest(span);
                Ok(())
            }
            MEMORY => {
                limit_memory(&self.0, "1")?;
                rest(dice.between(lease / 4, lease * 3 / 2));
                limit_memory(&self.0, "0")
            }
            FLUSH => again(dice, || self.tell(&["SCRIPT", "FLUSH"])),
            CUT => again(dice, || self.tell(&["CLIENT", "KILL", "TYPE", "normal"])),
            _ => again(dice, || self.tell(&["CLIENT", "KILL", "TYPE", "pubsub"])),
        }
    }

    fn leftovers(&self, killed: &[String]) -> io::Result<Vec<String>> {
        leftovers(&self.0, killed)
    }
}

impl Single {
    fn tell(&self, words: &[&str]) -> io::Result<()> {
        self.0.demand(words).map(drop)
    }
}

/// Killed, and after a while started again on the same port.
pub(super) fn kill(redis: &mut Redis, dice: &mut Dice) -> io::Result<()> {
    redis.crash()?;
    rest(dice.between(Duration::ZERO, Duration::from_millis(1500)));
    redis.restart().map_err(io::Error::other)
}

/// So many bytes; zero for no limit.
pub(super) fn limit_memory(redis: &Redis, bytes: &str) -> io::Result<()> {
    redis.demand(&["CONFIG", "SET", "maxmemory", bytes]).map(drop)
}

pub(super) fn version(redis: &Redis) -> String {
    let version = redis.info("redis_version").ok().flatten();
    format!("Redis {}", version.as_deref().unwrap_or("of unknown version").trim_end())
}

/// Longest that anything may stay behind: a name's last fence stays a day after its lease.
const STAYS: i64 = 25 * 3600 * 1000;

/// What Redis says of the life of a key that ended since it was listed.
const GONE: i64 = -2;

/// Every key that should not be there: locks, lines and holders, whatever has no end, and semaphores that lack permits.
/// What is ours and ends by itself within a day (last fences, who clients were) is no leak.
pub(super) fn leftovers(redis: &Redis, killed: &[String]) -> io::Result<Vec<String>> {
    let keys = redis.demand(&["KEYS", "*"])?;
    let mut left = Vec::new();
    for key in keys.parts().iter().filter_map(Reply::text) {
        let Reply::Integer(ttl) = redis.demand(&["PTTL", key])? else { continue };
        if ttl == GONE {
            continue;
        }
        let ends = (1..=STAYS).contains(&ttl);
        let is_ours = key.starts_with("leasehold_") && !key.starts_with("leasehold_holds:");
        let is_known = is_ours || is_full_semaphore(redis, key)? || is_line_of(redis, key, killed)?;
        if !(ends && is_known) {
            left.push(format!("{key} (for {ttl} ms)"));
        }
    }
    Ok(left)
}

/// The same where a failover may lose the last writes. That somebody left a line may be among them: it stands there until
/// its place is over, and the next who comes passes it over.
pub(super) fn leftovers_after_failovers(redis: &Redis, killed: &[String]) -> io::Result<Vec<String>> {
    let keys = redis.demand(&["KEYS", "leasehold_line:*"])?;
    let now = redis.demand(&["TIME"])?;
    let now = now.parts().first().and_then(Reply::text).unwrap_or_default();
    let mut gone = killed.to_vec();
    for places in keys.parts().iter().filter_map(Reply::text) {
        let over = redis.demand(&["ZRANGEBYSCORE", places, "0", &format!("{now}000")])?;
        gone.extend(over.parts().iter().filter_map(Reply::text).map(str::to_owned));
    }
    leftovers(redis, &gone)
}

/// A semaphore of ours with all its permits: what is there is what there are.
fn is_full_semaphore(redis: &Redis, key: &str) -> io::Result<bool> {
    if key.contains('{') {
        return Ok(false);
    }
    let of = redis.demand(&["GET", &format!("leasehold_permits:{{{key}}}")])?;
    Ok(of != Reply::Nil && redis.ask(&["GET", key])? == of)
}

/// A line in which only those stand that are gone.
fn is_line_of(redis: &Redis, key: &str, gone: &[String]) -> io::Result<bool> {
    let waiters = if key.starts_with("redisson_lock_queue:") {
        redis.demand(&["LRANGE", key, "0", "-1"])?
    } else if key.starts_with("redisson_lock_timeout:") {
        redis.demand(&["ZRANGE", key, "0", "-1"])?
    } else {
        return Ok(false);
    };
    let is_gone = |waiter: &str| gone.iter().any(|client| waiter.contains(client));
    Ok(waiters.parts().iter().filter_map(Reply::text).all(is_gone))
}
