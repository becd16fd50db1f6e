//! The terminal, lent to the child.
//!
//! The child has a process group of its own, and only the group that has the terminal may read from it. So the
//! child gets it, if it was ours to give: a `run` in the background of its shell leaves the terminal alone. In a
//! pipeline the others need it too (`run x -- make | less`): there the child gets it when it asks, by being stopped
//! for want of it. It comes back when the child ends or is stopped from the keyboard.

use std::{
    fs::{File, OpenOptions},
    io::{self, IsTerminal},
    os::fd::OwnedFd,
};

use nix::{
    sys::signal::{SigSet, Signal},
    unistd::{self, Pid},
};

/// The terminal that this process belongs to.
#[derive(Debug)]
pub(crate) struct Terminal(File);

impl Terminal {
    /// The terminal, if there is one.
    pub(crate) fn open() -> Option<Self> {
        OpenOptions::new().read(true).write(true).open("/dev/tty").ok().map(Self)
    }

    /// Whether the child should have it from the start: it is ours, and nobody in a pipeline needs it beside.
    pub(crate) fn is_wanted(&self) -> bool {
        io::stdin().is_terminal() && io::stdout().is_terminal() && self.is_ours()
    }

    /// Whether our own group has it now.
    pub(crate) fn is_ours(&self) -> bool {
        unistd::tcgetpgrp(&self.0) == Ok(unistd::getpgrp())
    }

    /// A handle for the child to take it by.
    pub(crate) fn handle(&self) -> io::Result<OwnedFd> {
        Ok(self.0.try_clone()?.into())
    }

    /// Gives it to the child's group.
    pub(crate) fn lend(&self, group: Pid) {
        self.give(group);
    }

    /// Takes it back, if the child's group still has it.
    pub(crate) fn take_back(&self, group: Pid) {
        if unistd::tcgetpgrp(&self.0) == Ok(group) {
            self.give(unistd::getpgrp());
        }
    }

    /// Takes it back from a child that took it and never ran.
    pub(crate) fn reclaim(&self) {
        let is_left_alone = |group| nix::sys::signal::killpg(group, None).is_err();
        if unistd::tcgetpgrp(&self.0).is_ok_and(is_left_alone) {
            self.give(unistd::getpgrp());
        }
    }

    /// From the background this sends TTOU to whoever asks, unless that is blocked.
    fn give(&self, group: Pid) {
        let stop = SigSet::from(Signal::SIGTTOU);
        let blocked = stop.thread_block();
        // A terminal that was hung up belongs to nobody.
        let _ = unistd::tcsetpgrp(&self.0, group);
        if blocked.is_ok() {
            let _ = stop.thread_unblock();
        }
    }
}
