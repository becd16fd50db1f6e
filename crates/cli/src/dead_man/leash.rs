//! The parent's end of a dead-man: starting it, telling it things, learning how it ended.
//!
//! Nothing here waits but for a process that was killed. The pipe never blocks the parent: a dead-man that does not
//! read (stopped by somebody) loses deadlines, and is thereby early, never late.

use std::{
    fs::File,
    io,
    os::{fd::OwnedFd, unix::process::CommandExt},
    process::{Child, Command, Stdio},
    time::Duration,
};

use leasehold::{
    ClaimId,
    time::{Clock, Instant},
};
use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    unistd,
};

use super::{
    ARGUMENT, NAME, Verdict, WATCHED,
    message::{Message, OnLost},
};

/// What a dead-man needs to know from the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// How long the child may take to end after it was asked to.
    pub(crate) grace: Duration,
    /// What to do when the lock is lost.
    pub(crate) on_lost: OnLost,
    /// An id of the hold, which every process started under it has in its environment.
    pub(crate) id: Option<ClaimId>,
}

/// A dead-man that watches for us.
#[derive(Debug)]
pub(crate) struct Leash {
    pipe: OwnedFd,
    process: Child,
    terms: Terms,
    told: Instant,
    alarm: Instant,
}

impl Leash {
    /// Starts a dead-man. It gets the store's session and the writing end of the child's pipe, and nothing else.
    /// What it has to know is in its pipe before it is started, so it is never without.
    pub(crate) fn start(
        terms: Terms,
        deadline: Instant,
        child: Option<i32>,
        session: Option<OwnedFd>,
        lost: OwnedFd,
    ) -> io::Result<Self> {
        let (told, pipe) = unistd::pipe2(OFlag::O_CLOEXEC)?;
        // Only our end: the other description is the dead-man's.
        fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let known =
            [Message::Grace(terms.grace), Message::OnLost(terms.on_lost), Message::Deadline(deadline)];
        for message in known.into_iter().chain(child.map(Message::Child)) {
            write(&pipe, message)?;
        }
        let session = session.map_or_else(|| File::open("/dev/null").map(OwnedFd::from), Ok)?;
        // The file itself, not its name: it may have been replaced since we were started.
        let process = Command::new("/proc/self/exe")
            .arg0(NAME)
            .arg(ARGUMENT)
            .env(WATCHED, terms.id.map(|id| id.to_string()).unwrap_or_default())
            .stdin(Stdio::from(told))
            .stdout(Stdio::from(session))
            .stderr(Stdio::from(lost))
            .process_group(0)
            .spawn()?;
        Ok(Self { pipe, process, terms, told: deadline, alarm: super::stop_at(deadline, terms.grace) })
    }

    /// What it was started with.
    pub(crate) fn terms(&self) -> Terms {
        self.terms
    }

    /// The newest deadline that it was told.
    pub(crate) fn told(&self) -> Instant {
        self.told
    }

    /// When it will act, by what it has surely heard.
    pub(crate) fn alarm(&self) -> Instant {
        self.alarm
    }

    /// Tells it a new deadline. One that does not listen will be early, never late.
    pub(crate) fn tell_deadline(&mut self, deadline: Instant, clock: &Clock) {
        self.told = deadline;
        let told = self.tell(Message::Deadline(deadline)).is_ok();
        // What is said after the alarm may find it at work, and deaf.
        if told && clock.now() < self.alarm {
            self.alarm = super::stop_at(deadline, self.terms.grace);
        }
    }

    /// Another writing end of its pipe, for the child to announce itself by.
    pub(crate) fn voice(&self) -> io::Result<OwnedFd> {
        self.pipe.try_clone()
    }

    /// Tells it something.
    ///
    /// # Errors
    /// `WouldBlock` if it does not listen at the moment, `BrokenPipe` if it is gone.
    pub(crate) fn tell(&self, message: Message) -> io::Result<()> {
        write(&self.pipe, message)
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<Verdict> {
        let status = self.process.try_wait().ok()??;
        Some(Verdict::from_code(status.code()))
    }

    /// Ends it when there is nothing left to watch. It would go by itself, having been told so; but not every init
    /// reaps what is left to it, and to wait for it would take longer.
    pub(crate) fn end(mut self) {
        // One that is gone already is reaped all the same.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn write(pipe: &OwnedFd, message: Message) -> io::Result<()> {
    loop {
        match unistd::write(pipe, &message.encode()) {
            Err(Errno::EINTR) => {}
            // Sixteen bytes go into a pipe whole or not at all.
            written => return Ok(written.map(drop)?),
        }
    }
}
