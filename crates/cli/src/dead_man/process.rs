//! The dead-man itself: a second process of this program that outlives a crash of the first.
//!
//! Descriptors: 0 is the pipe it is told things by, 1 the session of the store, 2 the writing end of the child's
//! `LEASEHOLD_LOST_FD`. It holds nothing else. While it lives the session lives, and with it the lock on stores
//! that know sessions; so it ends only when the child's group and kin have ended. It stops the child when its parent is gone
//! without a word (end of file on the pipe), when the deadline comes near without a renewal, and when told to.
//!
//! Deadlines are kept by a timer on the boot clock, which goes off on waking from a suspend that overslept it. All
//! signals are blocked: only KILL and STOP reach it, and its parent starts another if it dies.

use std::{
    fs::{self, File},
    io,
    os::fd::AsFd,
    panic,
    path::Path,
    process::ExitCode,
    time::Duration,
};

use leasehold::time::{Clock, Instant};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        signal::{SigSet, Signal},
        time::TimeSpec,
        timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags},
    },
    unistd,
};

use super::{
    NAME, Verdict, WATCHED,
    group::Group,
    kin::Kin,
    message::{Message, OnLost, Reason, SIZE},
};
use crate::nested;

/// The pause between two looks at a group that is ending.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LONGEST_LOOK: Duration = Duration::from_millis(50);

/// The grace under another run if our parent is gone: that run may be over as well, and its lock pass on.
const NESTED_GRACE: Duration = Duration::from_millis(100);

/// Runs as a dead-man until there is nothing left to watch.
pub(crate) fn main() -> ExitCode {
    // Descriptor 2 belongs to the child's pipe: nothing may ever be printed there.
    panic::set_hook(Box::new(|_| {}));
    let Ok(alarm) = prepare() else { return Verdict::Failed.into() };
    let mut watch = Watch::new(alarm);
    // A watch that cannot watch any more stops the child rather than let it run unseen.
    watch.run().unwrap_or_else(|_| watch.stop_child()).into()
}

/// Keeps nothing that could tie us to anybody: no signals, no descriptors, no folder.
fn prepare() -> io::Result<TimerFd> {
    SigSet::all().thread_block()?;
    for number in open_descriptors()? {
        // The listing's own descriptor is among them and closed already.
        let _ = unistd::close(number);
    }
    std::env::set_current_dir(Path::new("/"))?;
    // For whoever looks at the list of processes; nothing depends on it.
    let _ = fs::write("/proc/self/comm", NAME);
    Ok(TimerFd::new(ClockId::CLOCK_BOOTTIME, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?)
}

/// All but our three.
fn open_descriptors() -> io::Result<Vec<i32>> {
    let names = fs::read_dir("/proc/self/fd")?.filter_map(Result::ok);
    Ok(names
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .collect())
}

/// What is watched, as far as it was told.
struct Watch {
    alarm: TimerFd,
    clock: Clock,
    inbox: Inbox,
    grace: Duration,
    on_lost: OnLost,
    group: Option<Group>,
    kin: Option<Kin>,
    deadline: Instant,
}

enum Event {
    Told(Message),
    ParentGone,
    DeadlineNear,
}

impl Watch {
    fn new(alarm: TimerFd) -> Self {
        Self {
            alarm,
            clock: Clock::boot(),
            inbox: Inbox::default(),
            grace: Duration::ZERO,
            on_lost: OnLost::Kill,
            group: None,
            kin: std::env::var(WATCHED).ok().filter(|id| !id.is_empty()).map(Kin::of),
            deadline: Instant::from_nanos(u64::MAX),
        }
    }

    fn run(&mut self) -> io::Result<Verdict> {
        loop {
            match self.next_event()? {
                Event::Told(Message::Grace(grace)) => self.grace = grace,
                Event::Told(Message::OnLost(on_lost)) => self.on_lost = on_lost,
                Event::Told(Message::Child(pid)) => self.group = Some(Group::led_by(pid)),
                Event::Told(Message::Deadline(deadline)) => self.set_deadline(deadline)?,
                Event::Told(Message::Stop(Reason::TimeUp)) => return Ok(self.stop_child()),
                Event::Told(Message::Stop(Reason::Lost)) | Event::DeadlineNear => return self.lose(),
                Event::ParentGone => {
                    if nested::is_inside() {
                        self.grace = self.grace.min(NESTED_GRACE);
                    }
                    return self.lose();
                }
                Event::Told(Message::Done) => return Ok(Verdict::Quiet),
            }
        }
    }

    /// Messages come first: a renewal that has arrived counts, even if the alarm went off meanwhile.
    fn next_event(&mut self) -> io::Result<Event> {
        loop {
            if let Some(message) = self.inbox.pop()? {
                return Ok(Event::Told(message));
            }
            let stdin = io::stdin();
            let mut sources = [
                PollFd::new(stdin.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.alarm.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut sources, PollTimeout::NONE) {
                Err(Errno::EINTR) => continue,
                polled => polled?,
            };
            let [told, alarm] = sources.map(|source| source.any().unwrap_or(false));
            if told && self.inbox.fill()? == 0 {
                return Ok(Event::ParentGone);
            }
            if !told && alarm {
                return Ok(Event::DeadlineNear);
            }
        }
    }

    fn set_deadline(&mut self, deadline: Instant) -> io::Result<()> {
        self.deadline = deadline;
        // A timer set to zero is off, so the earliest time there is is one nanosecond.
        let then = Duration::from_nanos(super::stop_at(deadline, self.grace).as_nanos().max(1));
        let when = Expiration::OneShot(TimeSpec::from_duration(then));
        Ok(self.alarm.set(when, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?)
    }

    /// The lock is lost, or will be: the child is told, and stopped unless only a warning was wanted.
    fn lose(&mut self) -> io::Result<Verdict> {
        unistd::dup2_stderr(File::open("/dev/null")?)?;
        match self.on_lost {
            OnLost::Kill => Ok(self.stop_child()),
            OnLost::Warn => Ok(self.stand_by()),
        }
    }

    /// TERM, then KILL when the grace is over or the deadline is here, then wait for the last process to go.
    fn stop_child(&mut self) -> Verdict {
        let Some(group) = self.group.filter(|group| self.is_any_left(group)) else { return Verdict::Missed };
        let kill_at = self.clock.now().after(self.grace).min(super::kill_at(self.deadline, self.grace));
        self.signal(&group, Signal::SIGTERM);
        // A stopped process cannot act on TERM.
        self.signal(&group, Signal::SIGCONT);
        let mut look = FIRST_LOOK;
        while self.is_any_left(&group) {
            let now = self.clock.now();
            if now >= kill_at {
                // Every time: a process may have been forked since the last.
                self.signal(&group, Signal::SIGKILL);
            }
            let until_kill = now.until(kill_at);
            pause(if until_kill.is_zero() { look } else { look.min(until_kill) });
            look = (look * 2).min(LONGEST_LOOK);
        }
        Verdict::Stopped
    }

    /// Keeps the session while the child runs on, for as long as the lease would have lasted.
    fn stand_by(&mut self) -> Verdict {
        let Some(group) = self.group else { return Verdict::Missed };
        while self.is_any_left(&group) && self.clock.now() < self.deadline {
            pause(LONGEST_LOOK);
        }
        Verdict::Warned
    }

    /// The group comes first: it is quick to know, and the kin take a look at everybody.
    fn is_any_left(&self, group: &Group) -> bool {
        group.is_alive() || self.kin.as_ref().is_some_and(Kin::is_alive)
    }

    /// To the group, and to whoever of the kin is not in it.
    fn signal(&self, group: &Group, signal: Signal) {
        group.signal(signal);
        if let Some(kin) = &self.kin {
            kin.signal(signal, group);
        }
    }
}

/// Sleeps without a timer of its own: nothing here runs on an executor.
fn pause(duration: Duration) {
    let _ = poll(&mut [], PollTimeout::try_from(duration.max(FIRST_LOOK)).unwrap_or(PollTimeout::ZERO));
}

/// Bytes that have arrived and are no whole message yet, or several.
#[derive(Default)]
struct Inbox(Vec<u8>);

impl Inbox {
    /// Reads what is there; zero at the end of the pipe.
    fn fill(&mut self) -> io::Result<usize> {
        let mut bytes = [0; SIZE * 16];
        let count = match unistd::read(io::stdin(), &mut bytes) {
            Err(Errno::EINTR) => return self.fill(),
            count => count?,
        };
        self.0.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn pop(&mut self) -> io::Result<Option<Message>> {
        let Some(first) = self.0.first_chunk::<SIZE>().copied() else { return Ok(None) };
        self.0.drain(..SIZE);
        Message::decode(first).map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_may_arrive_in_pieces() {
        let bytes = [Message::Child(77).encode(), Message::Done.encode()].concat();
        let mut inbox = Inbox::default();
        let mut seen = Vec::new();
        for byte in bytes {
            inbox.0.push(byte);
            seen.extend(inbox.pop().unwrap());
        }
        assert_eq!(seen, [Message::Child(77), Message::Done]);
    }

    #[test]
    fn nonsense_is_an_error() {
        let mut inbox = Inbox(vec![0xff; SIZE]);
        assert!(inbox.pop().is_err());
    }
}
