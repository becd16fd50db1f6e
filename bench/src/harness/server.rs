//! The Redis that everything runs on, and what it counts.

use std::fs;

use leasehold_testkit::servers::redis::Redis;

/// A Redis of our own, with nothing else on it.
pub(crate) struct Server {
    redis: Redis,
}

/// What a server had counted at some time, or between two times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// How often it read from a connection.
    pub(crate) reads: u64,
    /// Processor time of its main thread, in seconds.
    pub(crate) cpu: f64,
}

impl Server {
    pub(crate) fn start() -> Result<Self, String> {
        Redis::start().map(|redis| Self { redis }).map_err(|error| error.to_string())
    }

    pub(crate) fn url(&self) -> String {
        self.redis.url()
    }

    pub(crate) fn address(&self) -> String {
        self.redis.address().to_string()
    }

    /// As if it had just been started.
    pub(crate) fn clear(&self) -> Result<(), String> {
        self.redis.demand(&["FLUSHALL"]).map(drop).map_err(|error| error.to_string())
    }

    pub(crate) fn version(&self) -> String {
        self.redis.info("redis_version").ok().flatten().unwrap_or_else(|| "unknown".to_owned())
    }

    pub(crate) fn seen(&self) -> Seen {
        let reads = self.redis.info("total_reads_processed").ok().flatten();
        let reads = reads.and_then(|reads| reads.trim().parse().ok()).unwrap_or(0);
        Seen { reads, cpu: self.cpu() }
    }

    fn cpu(&self) -> f64 {
        let pid = self.redis.pid();
        let times = fs::read_to_string(format!("/proc/{pid}/task/{pid}/schedstat")).unwrap_or_default();
        times.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or(0.0) * 1e-9
    }
}

impl Seen {
    /// What was counted since, without what it took to look.
    pub(crate) fn since(self, before: Self) -> Self {
        Self { reads: self.reads.saturating_sub(before.reads + 1), cpu: self.cpu - before.cpu }
    }
}
