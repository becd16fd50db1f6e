//! Why targets are missed, by hand: what a profile showed. The page shows the note of a target that is missed, and says
//! so where there is none; a target that is met needs none.

use crate::targets::Target;

/// Target and note: a sentence or two, with the figures of the profile.
const REASONS: &[(&str, &str)] = &[
    (
        "pairs64.rslock",
        "the server is the limit, and busy: 16.9 µs of its processor a pair, against 6.5 for `rslock`, which takes a lock by one `SET` and a release of three commands. Ours is a script each way, `plain()` too: it looks whether anybody is before us, takes the next fence from the server's clock, writes who holds. The client is not: 9.6 µs against 12.4.",
    ),
    (
        "cost.cpu",
        "a flat profile (`perf`, 64 tasks): the kernel's sockets and wake-ups about a quarter, the allocator a tenth, reading the clock 3 %, and no function of ours or of the client library above 2 %: encoding and parsing, one channel there and one back, the states of an acquisition. The same commands without a library take 1.3 µs, which is nearly all kernel.",
    ),
    ("counter.rslock", "a defect, mended since: see `counter.commands`."),
    ("counter.redis-py", "the same defect."),
    (
        "counter.commands",
        "a third of the commands are `UNSUBSCRIBE` and `SUBSCRIBE` (740 of each among 4578, by `MONITOR`): a channel was let go 200 ms after the first waiter had left it, though others had come and gone since; runs shorter than that do not show it. Mended since: a channel stays for 200 ms after the last one.",
    ),
    (
        "cohort.rslock",
        "25 µs a turn, all within one process: the fence is written down, a channel passes the lock to the task of the next one, and that task wakes its caller. Measured once more by itself on the same build: 59 ×; both last some 20 ms, so they are at the mercy of who else runs.",
    ),
    (
        "hold.local",
        "0.3 ms more a turn than a local semaphore: to give back and to take are a trip to the server each, since somebody of another process may be first. `cohort(64)` does without.",
    ),
    (
        "handoff.ping",
        "three trips after another, each of which wakes a process that has slept: the release with its message, the message, and the attempt of who was woken; each wake-up costs about what a cold PING does on two cores that share four processes. A direct grant would spare none of them: who is granted a lease has to ask how much of it is left.",
    ),
    (
        "handoff.poller",
        "see `handoff.ping`: 729 µs, against 21.7 ms of a library that polls every 50 ms, so that half of what it takes is chance.",
    ),
    (
        "waiters.commands",
        "one command every five seconds is ours: the first in line looks for itself, in case a message was lost (Java's fair lock sends none to others). The rest was counted by mistake: a run ended with the release of the lock, while commands were still counted. Mended since.",
    ),
    (
        "memory.pair",
        "3700 instructions a pair (`callgrind`), where a mutex has a hundred or so: a record with a lease and a fence, the clock, an entry for the keeper that watches the lease, and what a guard knows of itself.",
    ),
    (
        "memory.counter",
        "who has to wait is given a task and a channel of its own, so that dropping the future is hanging up and nothing else: a spawn, two wake-ups and a timer a turn, where a mutex wakes one waker.",
    ),
    (
        "mongodb.pair",
        "1.2 ms of the server's processor a pair against 0.75, and 0.39 ms of the client's against 0.23: the update is a pipeline that tells a lock that is free from one that ran out, is ours already or is waited for, in one request, and the server parses it each time.",
    ),
    (
        "memcached.pair",
        "28 µs of the client's processor a pair against 20: 2 to read and write the record as text, 2 to allocate, the rest the engine and what it awaits (`perf`); the bare requests write a text of the same length that nobody reads.",
    ),
    (
        "etcd.handoff",
        "a tie: both wait for etcd, which tells a watch that began at a revision of the past within a tenth of a second, and not at once. Ours begins after it since, which is told at once.",
    ),
    (
        "postgres.handoff",
        "three trips instead of one: the release with `NOTIFY`, what was notified, a look, and the claim that goes by it. `pg_advisory_lock` has a session of the server block for each who waits.",
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
