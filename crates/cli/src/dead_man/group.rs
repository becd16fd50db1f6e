//! A child's process group: signalling it, and knowing when none of it runs any more.
//!
//! A group's number can be given out again once the last process of it is gone and reaped. The leader's start time
//! is therefore remembered; a leader with another one is a stranger, and a strange group is never signalled.
//! A number is not given out while any process is in its group, so a group without its leader is still ours.
//! Processes that left the group (`setsid`, daemons) are not found here; some are by `kin`.

use std::fs;

use nix::{
    errno::Errno,
    sys::signal::{Signal, killpg},
    unistd::Pid,
};

use crate::procfs;

/// The process group that a child leads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    id: Pid,
    /// When the leader started, in ticks since boot; unknown if it was gone before we looked.
    born: Option<u64>,
}

impl Group {
    /// The group led by this process.
    pub(crate) fn led_by(pid: i32) -> Self {
        let born = Process::read(pid).map(|leader| leader.born);
        Self { id: Pid::from_raw(pid), born }
    }

    /// Sends a signal to every process of the group that we may signal.
    pub(crate) fn signal(&self, signal: Signal) {
        if !self.is_strange() {
            // A group that is gone meanwhile needs no signal; one that refuses it is waited for.
            let _ = killpg(self.id, signal);
        }
    }

    /// Whether this process is in the group.
    pub(crate) fn has(&self, pid: i32) -> bool {
        Process::read(pid).is_some_and(|process| process.group == self.id.as_raw())
    }

    /// Whether any process of the group still runs. One that has ended and waits to be reaped does not.
    pub(crate) fn is_alive(&self) -> bool {
        match Process::read(self.id.as_raw()) {
            Some(leader) if Some(leader.born) != self.born => return false,
            // The usual case, and quick to know: a look at everybody takes long on a busy machine.
            Some(leader) if !leader.ended => return true,
            _ if killpg(self.id, None) == Err(Errno::ESRCH) => return false,
            _ => {}
        }
        // Without a readable /proc nobody can tell the ended from the running: then all count as running.
        running().is_none_or(|mut all| all.any(|process| process.group == self.id.as_raw()))
    }

    fn is_strange(&self) -> bool {
        Process::read(self.id.as_raw()).is_some_and(|leader| Some(leader.born) != self.born)
    }
}

/// Every process that still runs.
fn running() -> Option<impl Iterator<Item = Process>> {
    let numbers =
        fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Some(numbers.filter_map(Process::read).filter(|process| !process.ended))
}

/// What /proc says of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    ended: bool,
    group: i32,
    born: u64,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(&procfs::read(&format!("/proc/{pid}/stat"))?)
    }

    /// `PID (NAME) STATE PARENT GROUP … THREADS … START …`, where NAME may hold anything, parentheses too. The state
    /// is that of the first thread: while others run on, the process has not ended.
    fn parse(stat: &[u8]) -> Option<Self> {
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let threads: u32 = fields.get(17)?.parse().ok()?;
        let ended = matches!(*fields.first()?, "Z" | "X" | "x") && threads <= 1;
        Some(Self { ended, group: fields.get(2)?.parse().ok()?, born: fields.get(19)?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::process::{CommandExt, ExitStatusExt},
        process::Command,
    };

    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = b"42 (a) Z 1 9 (\xff) S 1 77 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 99 1";
        assert_eq!(Process::parse(stat), Some(Process { ended: false, group: 77, born: 123_456 }));
        assert_eq!(Process::parse(b"42 (a)"), None);
    }

    #[test]
    fn an_ended_process_does_not_run_unless_some_of_its_threads_do() {
        let stat =
            |threads: u32| format!("42 (a) Z 1 77 42 0 -1 4 1 2 3 4 5 6 7 8 20 0 {threads} 0 123456 99 1");
        assert!(Process::parse(stat(1).as_bytes()).unwrap().ended);
        assert!(!Process::parse(stat(2).as_bytes()).unwrap().ended);
    }

    #[test]
    fn a_group_with_another_leader_is_not_ours() {
        let mut child = Command::new("sleep").arg("100").process_group(0).spawn().unwrap();
        let ours = Group::led_by(child.id().cast_signed());
        let born = ours.born.expect("the leader runs");
        let strange = Group { born: Some(born + 1), ..ours };
        strange.signal(Signal::SIGKILL);
        assert!(!strange.is_alive());
        assert!(ours.is_alive(), "what was meant for another reached it");
        ours.signal(Signal::SIGTERM);
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::SIGTERM as i32));
        assert!(!ours.is_alive());
    }
}
