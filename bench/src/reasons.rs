//! Why targets are missed, by hand: what a profile showed. The page shows the note of a target that is missed, and says
//! so where there is none; a target that is met needs none.

use crate::targets::Target;

/// Target and note: a sentence or two, with the figures of the profile.
const REASONS: &[(&str, &str)] = &[
    (
        "pairs64.rslock",
        "the server is the limit, and busy: its processor time per pair is in the table of costs. `rslock` takes a lock by one bare `SET`. Ours is a script each way, `plain()` too: the next fence, those who stand in line before us, and a request of ours that was given up and comes late are looked at in the same act, or they mean nothing. With 64 requests a write an empty script costs this server 2.0 µs, to look for these 0.9, the clock 0.8 and the fence 1.2; the client is not what is waited for.",
    ),
    (
        "cost.cpu",
        "a flat profile (`perf`, 64 tasks): the kernel's sockets and wake-ups about a quarter, the allocator a tenth, reading the clock 3 %, and no function of ours or of the client library above 2 %: encoding and parsing, one channel there and one back, the states of an acquisition. The same commands without a library take 1.3 µs, which is nearly all kernel.",
    ),
    (
        "counter.rslock",
        "a turn is waiting for threads, not for work: ten of the client's context switches an acquisition, and half a processor of two in use (`perf stat`), 200 to 230 µs. Whoever is next asks when the one before it has won, is told that it is busy, begins to listen, asks again and wins: three commands, two trips one after the other. To listen first took as many commands and a third longer; to be woken by the release of one's own process, and not by its message, changed nothing.",
    ),
    (
        "counter.distributed-lock",
        "as for `counter.rslock`; what it is compared with sleeps for times drawn by chance, and was slower in the run before.",
    ),
    (
        "cohort.rslock",
        "21 to 26 µs a turn, all within one process, and a whole processor in use: the fence is written down, a channel passes the lock to the task of the next one, and that task wakes its caller: two context switches a turn (`perf stat`). All of it lasts 20 ms, at the mercy of who else runs: by itself the same build was 59 times as fast as `rslock`.",
    ),
    (
        "hold.local",
        "0.3 ms more a turn than a local semaphore: to give back and to take are a trip to the server each, since somebody of another process may be first, and each wakes a thread or two. To wake the next one of this process when the release is sent, and not when its message comes, was tried: 1.13 to 1.15 instead of 1.15, for almost one more command an acquisition. `cohort(64)` does without the trips.",
    ),
    (
        "handoff.ping",
        "seven wake-ups one after the other (`strace`), where a PING has two: whoever releases hands its request to the connection's task, which a second thread takes over; the server; the process that waits, which asks at once on the thread that was woken; the server; the connection of that process; its caller. The first two are the price of a connection that many tasks share and that the client library drives: the same connection is what makes 64 tasks fast. A direct grant would spare none of them: who is granted a lease has to ask how much of it is left.",
    ),
    (
        "handoff.poller",
        "see `handoff.ping`; the one it is compared with polls every 50 ms, so that half of what it takes is chance.",
    ),
    (
        "waiters.commands",
        "one command every five seconds: the first in line looks for itself, in case a message was lost (Java's fair lock sends none to others). Whether it falls into the five seconds that are measured is chance.",
    ),
    (
        "memory.pair",
        "a flat profile (`perf`): reading the clock, three times, 10 %; the store itself with its map, mutex and record 11 %; no other function above 6 %, and within those it is reference counts: a lease and a fence are written down, the keeper has an entry that watches the lease, and a guard knows what it guards. A mutex does none of it.",
    ),
    (
        "memory.counter",
        "who has to wait is given a task and a channel of its own, so that dropping the future is hanging up and nothing else, and a caller that does not look any more holds up nobody behind it (decision 1): a spawn, two wake-ups and a timer a turn, where a mutex wakes one waker.",
    ),
    (
        "etcd.pair",
        "the condition that nobody is before us covers a range of keys, and etcd walks over those that were deleted until its history is compacted; each acquisition leaves one. With a new server, three seconds each one after the other: 2564, 2316, 2114 and 1803 pairs, and 2465 after a compaction; the bare requests, which use one key again and again, 3163. The client takes 0.32 ms of processor a pair against 0.25.",
    ),
    (
        "postgres.pair",
        "80 µs of the client's processor a pair against 55, and some 118 of the server's against 95: what is written is a text that says who holds, on the condition that nobody does, and it is read again to be told from anybody else's; the bare requests write a text of the same length that nobody reads.",
    ),
    (
        "mongodb.pair",
        "1.2 ms of the server's processor a pair against 0.75, and 0.39 ms of the client's against 0.23: the update is a pipeline that tells a lock that is free from one that ran out, is ours already or is waited for, in one request, and the server parses it each time. To return its time beside the document is a sixth of it; the index by which it removes old documents hardly counts.",
    ),
    (
        "memcached.pair",
        "28 µs of the client's processor a pair against 20 where the two take turns on one processor: 2 to read and write the record as text, 2 to allocate, the rest the engine and what it awaits (`perf`); the bare requests write a text of the same length that nobody reads.",
    ),
    (
        "postgres.handoff",
        "three trips instead of one: the release with `NOTIFY`, what was notified, a look, and the claim that goes by it. `pg_advisory_lock` has a session of the server block for each who waits. To notify the row itself would spare the look, but a lease has to be reckoned from a clock that was read after the wake-up was asked for, and a message may be late.",
    ),
];

/// A line for each of these.
pub(crate) fn lines(missed: &[&Target]) -> Vec<String> {
    lines_of(REASONS, missed)
}

fn lines_of(reasons: &[(&str, &str)], missed: &[&Target]) -> Vec<String> {
    let line = |target: &&Target| {
        let note =
            reasons.iter().find(|(id, _)| *id == target.id).map_or("no profile yet.", |(_, note)| note);
        format!("- `{}` ({}): {note}", target.id, target.what)
    };
    missed.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::TARGETS;

    /// Those that name no target, or one that has a note already.
    fn astray<'r>(reasons: &[(&'r str, &str)]) -> Vec<&'r str> {
        let strays = reasons.iter().enumerate().filter(|(at, (id, _))| {
            let is_again = reasons[..*at].iter().any(|(before, _)| before == id);
            is_again || !TARGETS.iter().any(|target| target.id == *id)
        });
        strays.map(|(_, (id, _))| *id).collect()
    }

    #[test]
    fn every_note_is_of_a_target_and_the_only_one_of_it() {
        assert_eq!(astray(REASONS), [""; 0]);
        assert_eq!(
            astray(&[("cost.cpu", "a"), ("cost.cpus", "b"), ("cost.cpu", "c")]),
            ["cost.cpus", "cost.cpu"]
        );
    }

    #[test]
    fn a_missed_target_has_its_note_or_none_yet() {
        let missed: Vec<&Target> = TARGETS.iter().take(2).collect();
        let lines = lines_of(&[(missed[1].id, "the profile says so")], &missed);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with(&format!("- `{}`", missed[0].id)), "{}", lines[0]);
        assert!(lines[0].ends_with(": no profile yet."), "{}", lines[0]);
        assert!(lines[1].ends_with(": the profile says so"), "{}", lines[1]);
    }
}
