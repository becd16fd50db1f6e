//! Redisson's semaphores, latches and rate limiters, with verbs named as in Redisson.

use std::{fmt::Display, time::Duration};

use crate::{call::Call, thread::Thread};

/// A semaphore: a number of permits that belong to nobody.
#[derive(Clone, Debug)]
pub struct Semaphore<'a> {
    thread: Thread<'a>,
    name: String,
}

/// A semaphore whose permits have ids and expire.
#[derive(Clone, Debug)]
pub struct Permits<'a> {
    thread: Thread<'a>,
    name: String,
}

/// A latch.
#[derive(Clone, Debug)]
pub struct Latch<'a> {
    thread: Thread<'a>,
    name: String,
}

/// A rate limiter.
#[derive(Clone, Debug)]
pub struct Limiter<'a> {
    thread: Thread<'a>,
    name: String,
}

impl<'a> Semaphore<'a> {
    pub(crate) fn new(thread: Thread<'a>, name: &str) -> Self {
        Self { thread, name: name.to_owned() }
    }

    /// Sets the number of permits unless it is set; says whether it did.
    pub fn try_set_permits(&self, permits: u32) -> Call<bool> {
        self.thread.tell("semaphore", &self.name, "trySet", &[&permits])
    }

    /// Waits for so many permits.
    pub fn acquire(&self, permits: u32) -> Call<()> {
        self.thread.tell("semaphore", &self.name, "acquire", &[&permits])
    }

    /// Takes so many permits if they are there.
    pub fn try_acquire(&self, permits: u32) -> Call<bool> {
        self.thread.tell("semaphore", &self.name, "tryAcquire", &[&permits])
    }

    /// Waits for so many permits, but no longer than this.
    pub fn try_acquire_within(&self, permits: u32, wait: Duration) -> Call<bool> {
        self.thread.tell("semaphore", &self.name, "tryAcquire", &[&permits, &wait.as_millis()])
    }

    /// Gives so many permits back.
    pub fn release(&self, permits: u32) -> Call<()> {
        self.thread.tell("semaphore", &self.name, "release", &[&permits])
    }

    /// Changes the number of permits by so many.
    pub fn add_permits(&self, permits: i32) -> Call<()> {
        self.thread.tell("semaphore", &self.name, "addPermits", &[&permits])
    }

    /// How many are there now.
    pub fn available(&self) -> Call<i64> {
        self.thread.tell("semaphore", &self.name, "available", &[])
    }

    /// Takes all that are there; says how many.
    pub fn drain(&self) -> Call<i64> {
        self.thread.tell("semaphore", &self.name, "drain", &[])
    }
}

impl<'a> Permits<'a> {
    pub(crate) fn new(thread: Thread<'a>, name: &str) -> Self {
        Self { thread, name: name.to_owned() }
    }

    /// Sets the number of permits unless it is set; says whether it did.
    pub fn try_set_permits(&self, permits: u32) -> Call<bool> {
        self.thread.tell("permits", &self.name, "trySet", &[&permits])
    }

    /// Waits for a permit that does not expire; returns its id.
    pub fn acquire(&self) -> Call<String> {
        self.thread.tell("permits", &self.name, "acquire", &[])
    }

    /// Waits for a permit that expires after so long; returns its id.
    pub fn acquire_for(&self, lease: Duration) -> Call<String> {
        self.thread.tell("permits", &self.name, "acquire", &[&lease.as_millis()])
    }

    /// Waits for several permits at once; returns their ids.
    pub fn acquire_many(&self, permits: u32, lease: Duration) -> Call<Vec<String>> {
        self.thread.tell("permits", &self.name, "acquireMany", &[&permits, &lease.as_millis()])
    }

    /// Takes a permit that does not expire, if there is one; returns its id.
    pub fn try_acquire(&self) -> Call<Option<String>> {
        self.thread.tell("permits", &self.name, "tryAcquire", &[])
    }

    /// Waits for a permit, but no longer than this; it expires after so long.
    pub fn try_acquire_for(&self, wait: Duration, lease: Duration) -> Call<Option<String>> {
        self.thread.tell("permits", &self.name, "tryAcquire", &[&wait.as_millis(), &lease.as_millis()])
    }

    /// Gives a permit back.
    pub fn release(&self, id: &str) -> Call<()> {
        self.thread.tell("permits", &self.name, "release", &[&id])
    }

    /// Gives several permits back: all or none.
    pub fn release_all(&self, ids: &[&str]) -> Call<()> {
        let ids: Vec<&dyn Display> = ids.iter().map(|id| id as &dyn Display).collect();
        self.thread.tell("permits", &self.name, "releaseAll", &ids)
    }

    /// Gives a permit back; says whether it was still valid.
    pub fn try_release(&self, id: &str) -> Call<bool> {
        self.thread.tell("permits", &self.name, "tryRelease", &[&id])
    }

    /// Lets a permit expire so long from now; says whether it was still valid.
    pub fn update_lease_time(&self, id: &str, lease: Duration) -> Call<bool> {
        self.thread.tell("permits", &self.name, "update", &[&id, &lease.as_millis()])
    }

    /// How many are there now.
    pub fn available(&self) -> Call<i64> {
        self.thread.tell("permits", &self.name, "available", &[])
    }

    /// How many are out now.
    pub fn acquired(&self) -> Call<i64> {
        self.thread.tell("permits", &self.name, "acquired", &[])
    }
}

impl<'a> Latch<'a> {
    pub(crate) fn new(thread: Thread<'a>, name: &str) -> Self {
        Self { thread, name: name.to_owned() }
    }

    /// Sets the count unless it is set; says whether it did.
    pub fn try_set_count(&self, count: u64) -> Call<bool> {
        self.thread.tell("latch", &self.name, "trySet", &[&count])
    }

    /// Counts down by one.
    pub fn count_down(&self) -> Call<()> {
        self.thread.tell("latch", &self.name, "countDown", &[])
    }

    /// The count.
    pub fn count(&self) -> Call<u64> {
        self.thread.tell("latch", &self.name, "count", &[])
    }

    /// Waits until the count is zero; always true.
    pub fn wait(&self) -> Call<bool> {
        self.thread.tell("latch", &self.name, "await", &[])
    }

    /// Waits until the count is zero, but no longer than this.
    pub fn wait_within(&self, wait: Duration) -> Call<bool> {
        self.thread.tell("latch", &self.name, "await", &[&wait.as_millis()])
    }

    /// Removes it; says whether it was there.
    pub fn delete(&self) -> Call<bool> {
        self.thread.tell("latch", &self.name, "delete", &[])
    }
}

impl<'a> Limiter<'a> {
    pub(crate) fn new(thread: Thread<'a>, name: &str) -> Self {
        Self { thread, name: name.to_owned() }
    }

    /// Sets so many permits in so long, for all clients together, unless it is set; says whether it did.
    pub fn try_set_rate(&self, permits: u32, interval: Duration) -> Call<bool> {
        self.thread.tell("limiter", &self.name, "trySet", &[&permits, &interval.as_millis()])
    }

    /// Sets so many permits in so long, for all clients together, whatever it was; what was taken counts no more.
    pub fn set_rate(&self, permits: u32, interval: Duration) -> Call<()> {
        self.thread.tell("limiter", &self.name, "set", &[&permits, &interval.as_millis()])
    }

    /// As [`try_set_rate`](Self::try_set_rate), but for each client.
    pub fn try_set_rate_per_client(&self, permits: u32, interval: Duration) -> Call<bool> {
        self.thread.tell("limiter", &self.name, "trySetEach", &[&permits, &interval.as_millis()])
    }

    /// Waits for so many permits.
    pub fn acquire(&self, permits: u32) -> Call<()> {
        self.thread.tell("limiter", &self.name, "acquire", &[&permits])
    }

    /// Takes so many permits if they are there.
    pub fn try_acquire(&self, permits: u32) -> Call<bool> {
        self.thread.tell("limiter", &self.name, "tryAcquire", &[&permits])
    }

    /// Waits for so many permits, but no longer than this.
    pub fn try_acquire_within(&self, permits: u32, wait: Duration) -> Call<bool> {
        self.thread.tell("limiter", &self.name, "tryAcquire", &[&permits, &wait.as_millis()])
    }

    /// How many are there now.
    pub fn available(&self) -> Call<i64> {
        self.thread.tell("limiter", &self.name, "available", &[])
    }
}
