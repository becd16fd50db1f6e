//! The dead-man: who stops the child when `leasehold run` itself no longer can.
//!
//! `run` may be killed or stopped while its child works on. The dead-man is a second process, started before the
//! child, that is told every renewed deadline over a pipe and stops the child when its parent is gone or the
//! deadline comes near. [`process`] is that process, [`leash`] the parent's end of it, [`message`] what passes
//! between them, [`group`] the child's process group as both see it, and `kin` those that left it.
//!
//! What it cannot do: stop processes that left the child's group and dropped its environment or its user, or act
//! while it is itself stopped.

pub(crate) mod group;
mod kin;
pub(crate) mod leash;
pub(crate) mod message;
pub(crate) mod process;

use std::{process::ExitCode, time::Duration};

use leasehold::time::Instant;

/// The hidden first argument that makes this program a dead-man.
pub(crate) const ARGUMENT: &str = "__dead-man";

/// What it is called in the list of processes: nothing that a search for the program's name would find.
const NAME: &str = "dead-man";

/// The variable by which it is told an id that its child's processes have in their environment.
const WATCHED: &str = "LEASEHOLD_WATCHED";

/// The time kept between killing the child and the deadline, at least and at most: a busy machine may let us wait
/// for our turn.
const MARGIN: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// How a dead-man ended: its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was dismissed and has done nothing.
    Quiet,
    /// It was to stop the child, and nothing ran any more.
    Missed,
    /// It has stopped the child.
    Stopped,
    /// It has told the child that the lock is lost.
    Warned,
    /// It could not do its work.
    Failed,
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        Self::from(match verdict {
            Verdict::Quiet => 0,
            Verdict::Missed => 10,
            Verdict::Stopped => 11,
            Verdict::Warned => 12,
            Verdict::Failed => 13,
        })
    }
}

impl Verdict {
    /// What this exit code says; any other end is a failure.
    fn from_code(code: Option<i32>) -> Self {
        match code {
            Some(0) => Self::Quiet,
            Some(10) => Self::Missed,
            Some(11) => Self::Stopped,
            Some(12) => Self::Warned,
            _ => Self::Failed,
        }
    }
}

/// When the child is asked to end, if nothing moves the deadline: early enough for the whole grace.
pub(crate) fn stop_at(deadline: Instant, grace: Duration) -> Instant {
    before(kill_at(deadline, grace), grace)
}

/// When what is left of the child is killed: so long before the deadline that it is gone by then.
fn kill_at(deadline: Instant, grace: Duration) -> Instant {
    before(deadline, (grace / 2).clamp(MARGIN.0, MARGIN.1))
}

fn before(then: Instant, lead: Duration) -> Instant {
    Instant::from_nanos(then.as_nanos().saturating_sub(lead.as_nanos() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_child_is_asked_and_killed_before_the_deadline() {
        let deadline = Instant::from_nanos(0).after(Duration::from_secs(100));
        for grace in [0, 1, 500, 5000].map(Duration::from_millis) {
            let (asked, killed) = (stop_at(deadline, grace), kill_at(deadline, grace));
            assert!(asked <= killed && killed < deadline, "{grace:?}");
            assert_eq!(asked.until(killed), grace);
        }
    }

    #[test]
    fn a_deadline_without_room_is_now() {
        assert_eq!(stop_at(Instant::from_nanos(5), Duration::from_secs(1)), Instant::from_nanos(0));
    }

    #[test]
    fn verdicts_survive_the_exit_code() {
        for (verdict, code) in
            [(Verdict::Quiet, 0), (Verdict::Missed, 10), (Verdict::Stopped, 11), (Verdict::Warned, 12)]
        {
            assert_eq!(Verdict::from_code(Some(code.into())), verdict);
            assert_eq!(ExitCode::from(verdict), ExitCode::from(code));
        }
        assert_eq!(Verdict::from_code(None), Verdict::Failed);
    }
}
