//! Starting the child: the one place of this project with `unsafe` in it.
//!
//! Between fork and exec the child must do three things for itself. It tells the dead-man its number: were that
//! the parent's to do, a parent killed right after the fork would leave a child that nobody knows of; as it is, the
//! child holds the pipe open until it has spoken. It takes the terminal, so that it never runs a moment in the
//! background of it. And it keeps `LEASEHOLD_LOST_FD` across exec, which no other process may inherit.
#![expect(
    unsafe_code,
    reason = "the child has to act between fork and exec, which std offers only as unsafe"
)]

use std::{
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::{Child, Command},
};

use nix::{
    fcntl::{FcntlArg, FdFlag, fcntl},
    sys::signal::{SigSet, Signal},
    unistd,
};

use crate::dead_man::message::Message;

/// What the child takes along.
#[derive(Debug)]
pub(crate) struct Gear {
    /// The reading end of the pipe that ends when the lock is lost.
    pub(crate) lost: OwnedFd,
    /// The writing end of the dead-man's pipe.
    pub(crate) voice: OwnedFd,
    /// The terminal, if it is ours to give.
    pub(crate) terminal: Option<OwnedFd>,
}

/// Starts the command as the leader of a process group of its own.
///
/// # Errors
/// As `Command::spawn`; `BrokenPipe` if the dead-man is gone. The command does not run then.
pub(crate) fn spawn(mut command: Command, gear: Gear) -> io::Result<Child> {
    command.env("LEASEHOLD_LOST_FD", gear.lost.as_raw_fd().to_string());
    command.process_group(0);
    // SAFETY: `prepare` runs in the forked child, where another thread may have held any lock. It takes none and
    // allocates nothing: each call in it is a thin wrapper of an async-signal-safe system call (getpid, write,
    // fcntl, tcsetpgrp, pthread_sigmask) on values made before the fork, and its errors carry a number only.
    // The descriptors are owned by the closure, so they are open for as long as it can be called.
    unsafe { command.pre_exec(move || prepare(&gear)) };
    command.spawn()
}

fn prepare(gear: &Gear) -> io::Result<()> {
    // PIPE, so that a dead-man that is gone is an error and not a death; TTOU, so that a process in the background
    // may take the terminal.
    let mut quiet = SigSet::empty();
    quiet.add(Signal::SIGPIPE);
    quiet.add(Signal::SIGTTOU);
    quiet.thread_block()?;
    let own = unistd::getpid();
    unistd::write(&gear.voice, &Message::Child(own.as_raw()).encode())?;
    fcntl(&gear.lost, FcntlArg::F_SETFD(FdFlag::empty()))?;
    if let Some(terminal) = &gear.terminal {
        // The terminal may have been hung up; the child then does without.
        let _ = unistd::tcsetpgrp(terminal, own);
    }
    Ok(quiet.thread_unblock()?)
}
