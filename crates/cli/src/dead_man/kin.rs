//! The child's kin: every process that was started under our lock, found by the environment it inherited.
//!
//! A process may leave the child's group: a `run` inside a `run` gives its own child a group, `setsid` and daemons
//! do the like. The environment stays with them, and in it the ids of the holds that they were started under.
//! Not found are processes of other users, and those that have overwritten or cleared their environment.
//!
//! Other dead-men are kin too. They are waited for and never killed: each ends by itself when its child has, and
//! the lock that it guards must not pass on before.

use std::{
    fs::{self, File},
    io::Read,
    os::fd::OwnedFd,
    thread,
};

use nix::sys::signal::Signal;
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

use super::{ARGUMENT, group::Group};
use crate::{nested, procfs};

/// More than most environments have, in bytes.
const USUAL: usize = 64 << 10;

/// More than an environment may have.
const LONGEST: usize = 8 << 20;

/// How often a process without environment is looked at before that is believed: replacing a program takes less.
const LOOKS: usize = 1_000;

/// All processes started under one hold.
#[derive(Debug)]
pub(super) struct Kin {
    /// The hold's id, as the environment has it.
    id: String,
}

impl Kin {
    /// Those started under the hold of this id.
    pub(super) fn of(id: String) -> Self {
        Self { id }
    }

    /// Whether any of them still runs.
    pub(super) fn is_alive(&self) -> bool {
        self.members().next().is_some()
    }

    /// Sends a signal to each of them that is no dead-man, nor of this group: that one got it already.
    pub(super) fn signal(&self, signal: Signal, group: &Group) {
        let Some(signal) = rustix::process::Signal::from_named_raw(signal as i32) else { return };
        let others =
            self.members().filter(|(pid, _)| !is_dead_man(*pid) && !group.has(pid.as_raw_nonzero().get()));
        for (_, process) in others {
            // One that is gone meanwhile needs no signal.
            let _ = pidfd_send_signal(process, signal);
        }
    }

    fn members(&self) -> impl Iterator<Item = (Pid, OwnedFd)> {
        let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
        let numbers = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
        numbers.filter_map(|pid| {
            // Before its environment is read: were the number given to another meanwhile, the signal would go to
            // the one that is gone, which is nobody.
            let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
            self.claims(&environment(pid)?).then_some((pid, process))
        })
    }

    /// Whether this environment is that of a process under our hold.
    fn claims(&self, environment: &[u8]) -> bool {
        let held = environment
            .split(|byte| *byte == 0)
            .find_map(|variable| variable.strip_prefix(nested::VARIABLE.as_bytes())?.strip_prefix(b"="));
        held.is_some_and(|ids| ids.split(|byte| *byte == b',').any(|id| id == self.id.as_bytes()))
    }
}

/// What the process was started with; that of one that has ended is empty.
///
/// While a process replaces its program, the kernel shows no environment for a moment, and none of a file opened
/// before: it is looked at again, or a kinsman that calls `exec` just then would be missed, and the lock pass on while
/// it runs.
fn environment(pid: Pid) -> Option<Vec<u8>> {
    let mut size = USUAL;
    for _ in 0..LOOKS {
        let mut content = vec![0; size];
        // In one read: between two the program may be replaced, and the second would find nothing.
        let length =
            File::open(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()?.read(&mut content).ok()?;
        content.truncate(length);
        if length == size && size < LONGEST {
            size = LONGEST;
        } else if length > 0 || !has_memory(pid) {
            return Some(content);
        } else {
            thread::yield_now();
        }
    }
    Some(Vec::new())
}

/// Whether the process has memory: kernel threads and processes that have ended have none.
fn has_memory(pid: Pid) -> bool {
    let sizes = procfs::read(&format!("/proc/{}/statm", pid.as_raw_nonzero())).unwrap_or_default();
    sizes.first().is_some_and(|digit| *digit != b'0')
}

fn is_dead_man(pid: Pid) -> bool {
    let command = procfs::read(&format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    command.split(|byte| *byte == 0).nth(1) == Some(ARGUMENT.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn an_id_is_compared_whole() {
        let kin = Kin::of("a-1".to_owned());
        assert!(kin.claims(b"HOME=/\0LEASEHOLD_HELD=b-7,a-1\0X=1\0"));
        for other in
            ["", "LEASEHOLD_HELD=", "LEASEHOLD_HELD=a-11,xa-1", "LEASEHOLD_ID=a-1", "X=LEASEHOLD_HELD=a-1"]
        {
            assert!(!kin.claims(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn a_process_that_replaces_its_program_is_not_missed() {
        let id = format!("kin-exec-test-{}", std::process::id());
        let kin = Kin::of(id.clone());
        // Replaces itself again and again; every look falls into one of these moments sooner or later.
        let again = "[ $1 -gt 0 ] || exec sleep 100; exec sh -c \"$0\" \"$0\" $(($1 - 1))";
        let mut child =
            Command::new("sh").args(["-c", again, again, "300"]).env(nested::VARIABLE, id).spawn().unwrap();
        let seen = (0..300).filter(|_| kin.is_alive()).count();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(seen, 300);
    }

    #[test]
    fn those_started_with_the_id_are_found_and_killed() {
        let id = format!("kin-test-{}", std::process::id());
        let kin = Kin::of(id.clone());
        assert!(!kin.is_alive());
        let mut child = Command::new("sleep").arg("100").env(nested::VARIABLE, id).spawn().unwrap();
        assert!(kin.is_alive());
        kin.signal(Signal::SIGKILL, &Group::led_by(std::process::id().cast_signed()));
        assert!(!child.wait().unwrap().success());
        assert!(!kin.is_alive());
    }
}
