//! What we want, row by row. A row that was not measured is shown with the reason; none can be forgotten.

/// A target.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) id: &'static str,
    pub(crate) what: &'static str,
    pub(crate) want: Want,
    pub(crate) unit: &'static str,
}

/// The bound.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Want {
    AtLeast(f64),
    AtMost(f64),
}

impl Want {
    pub(crate) fn is_met(self, measured: f64) -> bool {
        match self {
            Self::AtLeast(bound) => measured >= bound,
            Self::AtMost(bound) => measured <= bound,
        }
    }
}

const fn at_least(id: &'static str, bound: f64, unit: &'static str, what: &'static str) -> Target {
    Target { id, what, want: Want::AtLeast(bound), unit }
}

const fn at_most(id: &'static str, bound: f64, unit: &'static str, what: &'static str) -> Target {
    Target { id, what, want: Want::AtMost(bound), unit }
}

/// All of them. Redis unless said, one connection, tokio's default runtime.
pub(crate) const TARGETS: &[Target] = &[
    at_least(
        "pairs64.redisson",
        0.90,
        "×",
        "uncontended pairs/s, 64 tasks, against the bare pipelined rate of the same commands at depth 64: Redisson layout with fence and publish",
    ),
    at_least("pairs64.plain", 0.90, "×", "the same, `plain()` against its own commands"),
    at_least("pairs64.rslock", 1.2, "×", "the same, `plain()` against `rslock`"),
    at_least(
        "pairs256.redisson",
        0.85,
        "×",
        "uncontended pairs/s, 256 tasks, against the saturation rate of the same commands: Redisson layout",
    ),
    at_least("pairs256.plain", 0.85, "×", "the same, `plain()`"),
    at_most("cost.cpu", 4.5, " µs", "client processor time per pair, 64 tasks"),
    at_most("cost.allocations", 16.0, "", "allocations per pair, 64 tasks"),
    at_least(
        "cost.reads",
        20.0,
        "",
        "commands per server read, 64 tasks (free of noise: the regression gauge)",
    ),
    at_most("single.p50", 1.10, "×", "one task, one lock: p50 against the bare pair"),
    at_least("counter.rslock", 4.0, "×", "`counter`, 1000 tasks, one process: faster than `rslock`"),
    at_least("counter.distributed-lock", 25.0, "×", "the same: faster than `distributed-lock`"),
    at_least("counter.redis-py", 50.0, "×", "the same: faster than redis-py"),
    at_most("counter.commands", 3.3, "", "the same: commands per acquisition"),
    at_least("cohort.rslock", 40.0, "×", "the same with `cohort(64)`: faster than `rslock`"),
    at_most("cohort.commands", 0.1, "", "the same with `cohort(64)`: commands per acquisition"),
    at_least("counter4.exact", 1.0, " of the count", "`counter`, 1000 tasks in 4 processes: exact"),
    at_most("counter4.commands", 6.0, "", "the same: commands per acquisition"),
    at_least("counter4.redisson", 1.0, "×", "the same: faster than Redisson's 1000 threads in 4 JVMs"),
    at_most("hold.local", 1.08, "×", "200 tasks holding 1 ms each, against a local semaphore"),
    at_most("handoff.ping", 4.0, " cold PINGs", "hand-off between two processes, p50"),
    at_least("handoff.poller", 50.0, "×", "the same: faster than the fastest library that polls"),
    at_most("handoff.redisson", 1.0, "×", "the same: against Redisson"),
    at_most("waiters.commands", 0.0, "", "200 waiters on a held lock, 5 s: commands beyond renewals"),
    at_most("waiters.cpu", 0.1, " % of a core", "the same: server processor time above idle"),
    at_most("held.memory", 1000.0, " B", "100 000 held locks: client memory each"),
    at_least("held.renewals", 50.0, "", "the same: renewals per command"),
    at_least("held.in-time", 1.0, " of all", "the same: renewed in time, on one thread"),
    at_most("memory.pair", 10.0, "×", "memory store, uncontended: against `tokio::sync::Mutex`"),
    at_most("memory.counter", 3.0, "×", "memory store, 1000-task counter: against `tokio::sync::Mutex`"),
    at_least("sqlite.rate", 0.8, "×", "SQLite: against the rate of bare transactions"),
    at_least("etcd.pair", 0.8, "×", "etcd, uncontended pair: against the bare requests that it needs"),
    at_least("zookeeper.pair", 0.8, "×", "the same: ZooKeeper"),
    at_least("postgres.pair", 0.8, "×", "the same: PostgreSQL"),
    at_least("mariadb.pair", 0.8, "×", "the same: MariaDB"),
    at_least("mongodb.pair", 0.8, "×", "the same: MongoDB"),
    at_least("memcached.pair", 0.8, "×", "the same: memcached"),
    at_most("etcd.handoff", 1.0, "×", "hand-off on etcd, p50: against Go's `concurrency`"),
    at_most("zookeeper.handoff.curator", 1.0, "×", "the same on ZooKeeper: against Curator"),
    at_most("zookeeper.handoff.kazoo", 1.0, "×", "the same on ZooKeeper: against kazoo"),
    at_most("postgres.handoff", 1.0, "×", "the same on PostgreSQL: against `pg_advisory_lock`"),
    at_most("command.excess", 10.0, " ms", "`leasehold run x -- true`: over `flock x true`"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_a_name_of_its_own() {
        let mut ids: Vec<&str> = TARGETS.iter().map(|target| target.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), TARGETS.len());
    }
}
