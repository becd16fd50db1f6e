//! The pipe behind `LEASEHOLD_LOST_FD`: nothing is ever written to it, and it ends when the lock is lost.
//!
//! It is made before anything else is opened, so that its reading end gets the lowest number that is free: some
//! shells can only redirect from single-digit descriptors. The dead-man alone has the writing end. Should the
//! dead-man die, a child that reads at that moment sees the end though the lock is held: safe, if too careful.

use std::{
    fs::{File, OpenOptions},
    io,
    os::fd::{AsRawFd, OwnedFd},
};

use nix::{fcntl::OFlag, unistd::pipe2};

use crate::exit::Failure;

/// A pipe that nobody has yet.
#[derive(Debug)]
pub(crate) struct LostPipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl LostPipe {
    /// Makes the pipe.
    pub(crate) fn open() -> Result<Self, Failure> {
        let pipe = pipe2(OFlag::O_CLOEXEC);
        let (read, write) = pipe.map_err(|error| Failure::internal("cannot make a pipe", error))?;
        Ok(Self { read, write })
    }

    /// The reading end, for the child, and the writing end, for the dead-man.
    pub(crate) fn split(self) -> (OwnedFd, OwnedFd) {
        (self.read, self.write)
    }
}

/// Another writing end of the pipe that this is the reading end of.
pub(crate) fn write_end(read: &OwnedFd) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", read.as_raw_fd());
    OpenOptions::new().write(true).open(path).map(|file: File| file.into())
}
