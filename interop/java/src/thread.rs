//! A named thread of the child. To Redisson a thread is an owner: re-entry counts by it, and only it unlocks.

use std::fmt::Display;

use serde::de::DeserializeOwned;

use crate::{
    call::{Call, CallError},
    counters::{Latch, Limiter, Permits, Semaphore},
    java::Java,
    locks::Lock,
};

/// A thread. What it is told it does in order; different threads do not wait for each other.
#[derive(Clone, Copy, Debug)]
pub struct Thread<'a> {
    java: &'a Java,
    name: &'a str,
}

impl<'a> Thread<'a> {
    pub(crate) fn new(java: &'a Java, name: &'a str) -> Self {
        Self { java, name }
    }

    /// A re-entrant lock.
    pub fn lock(self, name: &str) -> Lock<'a> {
        Lock::new(self, "lock", name)
    }

    /// A fair lock.
    pub fn fair(self, name: &str) -> Lock<'a> {
        Lock::new(self, "fair", name)
    }

    /// The read side of a read-write lock.
    pub fn read(self, name: &str) -> Lock<'a> {
        Lock::new(self, "read", name)
    }

    /// The write side of a read-write lock.
    pub fn write(self, name: &str) -> Lock<'a> {
        Lock::new(self, "write", name)
    }

    /// A spin lock.
    pub fn spin(self, name: &str) -> Lock<'a> {
        Lock::new(self, "spin", name)
    }

    /// A fenced lock.
    pub fn fenced(self, name: &str) -> Lock<'a> {
        Lock::new(self, "fenced", name)
    }

    /// Several re-entrant locks as one. Names hold no commas here.
    pub fn multi(self, names: &[&str]) -> Lock<'a> {
        Lock::new(self, "multi", &names.join(","))
    }

    /// The same lock on all servers of [`Config::singles`](crate::Config::singles), by majority.
    pub fn redlock(self, name: &str) -> Lock<'a> {
        Lock::new(self, "redlock", name)
    }

    /// A semaphore.
    pub fn semaphore(self, name: &str) -> Semaphore<'a> {
        Semaphore::new(self, name)
    }

    /// A semaphore whose permits have ids and expire.
    pub fn permits(self, name: &str) -> Permits<'a> {
        Permits::new(self, name)
    }

    /// A count-down latch.
    pub fn latch(self, name: &str) -> Latch<'a> {
        Latch::new(self, name)
    }

    /// A rate limiter.
    pub fn limiter(self, name: &str) -> Limiter<'a> {
        Limiter::new(self, name)
    }

    /// So many threads more add one to the value at `key` so many times each, in two steps, under the lock. Returns how
    /// often they did: the value has grown by that if the lock excludes.
    pub fn count(self, lock: &Lock<'_>, key: &str, threads: u32, times: u32) -> Call<u64> {
        self.tell("counter", lock.name(), lock.kind(), &[&key, &threads, &times])
    }

    /// So many threads more lock and unlock one lock each, of this kind, for so long. Returns how many pairs there were.
    pub fn pairs(self, lock: &Lock<'_>, threads: u32, lasting: std::time::Duration) -> Call<u64> {
        self.tell("pairs", lock.name(), lock.kind(), &[&threads, &lasting.as_millis()])
    }

    /// Interrupts what it is doing now, if that can be interrupted.
    pub fn interrupt(self) -> Call<()> {
        self.java.call(format!("- interrupt {}", self.name))
    }

    /// What it is called as a holder: the client's id and the thread's number.
    ///
    /// # Errors
    /// [`CallError`]
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn holder(self) -> Result<String, CallError> {
        let number: Call<u64> = self.java.call(format!("- thread {}", self.name));
        Ok(format!("{}:{}", self.java.client(), number.await?.value))
    }

    /// Sends a command: an object, its name, what to do with it.
    pub(crate) fn tell<T: DeserializeOwned>(
        self,
        object: &str,
        name: &str,
        verb: &str,
        arguments: &[&dyn Display],
    ) -> Call<T> {
        let mut command = format!("{} {object} {name} {verb}", self.name);
        for argument in arguments {
            command.push(' ');
            command.push_str(&argument.to_string());
        }
        self.java.call(command)
    }
}
