//! The loop that watches over a running child.

use std::{io, os::fd::OwnedFd, process::Child, time::Duration};

use leasehold::{
    Client,
    backend::Loss,
    time::{Clock, Instant},
};
use nix::{
    sys::{
        signal::{Signal, killpg},
        wait::{Id, WaitPidFlag, WaitStatus, waitid},
    },
    unistd::{self, Pid},
};

use super::{End, Ended, Stop, hold::Hold, lost_pipe, signals::Signals, terminal::Terminal};
use crate::{
    dead_man::{
        Verdict,
        group::Group,
        leash::Leash,
        message::{Message, OnLost, Reason},
    },
    print,
};

/// How much longer than the grace a dead-man may take before we act ourselves.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often a dead-man that dies is replaced.
const REPLACEMENTS: u32 = 5;

/// A running child, its dead-man, and what is known of both.
pub(super) struct Watch<'a> {
    child: Child,
    group: Group,
    leash: Leash,
    hold: &'a Hold<'a>,
    client: &'a Client,
    /// The reading end of the child's pipe, to make another writing end from.
    lost_read: OwnedFd,
    terminal: Option<Terminal>,
    clock: Clock,
    stopped: Option<Stop>,
    loss: Option<Loss>,
    /// When we kill what is left of the child ourselves.
    kill_at: Option<Instant>,
    replacements: u32,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        child: Child,
        leash: Leash,
        hold: &'a Hold<'a>,
        client: &'a Client,
        lost_read: OwnedFd,
        terminal: Option<Terminal>,
    ) -> Self {
        let group = Group::led_by(pid(&child).as_raw());
        Self {
            child,
            group,
            leash,
            hold,
            client,
            lost_read,
            terminal,
            clock: Clock::boot(),
            stopped: None,
            loss: None,
            kill_at: None,
            replacements: 0,
        }
    }

    /// Watches until the child has ended and, if it was stopped, its whole group.
    pub(super) async fn until_the_end(mut self, max_run: Option<Duration>, mut signals: Signals) -> Ended {
        let time_up = max_run.map(|max_run| self.clock.now().after(max_run));
        // What the child did comes first, always: a lock lost after the child's end was not lost while it ran.
        while !self.child_has_ended() {
            self.see_to_the_dead_man();
            self.see_to_the_terminal();
            let clock = self.clock.clone();
            let (hold, told, watching) = (self.hold, self.leash.told(), self.loss.is_none());
            tokio::select! {
                biased;
                signal = signals.next() => self.hear(signal),
                loss = hold.lost(), if watching => self.lose(loss),
                () = hold.renewed(told), if watching => self.leash.tell_deadline(hold.deadline(), &clock),
                () = sleep_until(&clock, time_up), if self.stopped.is_none() => self.stop(Stop::TimeUp),
                () = sleep_until(&clock, self.kill_at) => self.kill(),
            }
        }
        self.finish(signals).await
    }

    /// A signal to us is the child's, except for the news of its end.
    fn hear(&mut self, signal: Signal) {
        if signal == Signal::SIGCHLD {
            return;
        }
        if let (Signal::SIGCONT, Some(terminal)) = (signal, &self.terminal) {
            // Back from the background, where we gave the terminal back.
            if terminal.is_wanted() {
                terminal.lend(pid(&self.child));
            }
        }
        self.group.signal(signal);
    }

    fn lose(&mut self, loss: Loss) {
        // After a long stop the clock is heard before the news of the child's end.
        if self.child_has_ended() {
            return;
        }
        self.loss = Some(loss.clone());
        match self.leash.terms().on_lost {
            OnLost::Kill => {
                let is_over = matches!(loss, Loss::Expired | Loss::MaxHold);
                self.stop(Stop::Lost(loss));
                if is_over {
                    // The dead-man should have done it before the deadline; now nothing may be waited for.
                    self.kill();
                }
            }
            OnLost::Warn => {
                print::warn(&format!("{loss}; the command runs on, as asked"));
                let _ = self.leash.tell(Message::Stop(Reason::Lost));
            }
        }
    }

    /// Has the child stopped: by the dead-man, and by ourselves should that fail.
    fn stop(&mut self, why: Stop) {
        let reason = if why == Stop::TimeUp { Reason::TimeUp } else { Reason::Lost };
        let watched = why != Stop::Unwatched && self.leash.tell(Message::Stop(reason)).is_ok();
        if !watched {
            self.group.signal(Signal::SIGTERM);
            self.group.signal(Signal::SIGCONT);
        }
        let patience = if watched { self.leash.terms().grace + PATIENCE } else { self.leash.terms().grace };
        self.kill_at = Some(self.clock.now().after(patience));
        self.stopped.get_or_insert(why);
    }

    fn kill(&mut self) {
        self.group.signal(Signal::SIGKILL);
        self.kill_at = Some(self.clock.now().after(PATIENCE));
    }

    /// A dead-man that has done its work says so by ending; one that just died is replaced.
    fn see_to_the_dead_man(&mut self) {
        let Some(verdict) = self.leash.ended() else { return };
        if verdict == Verdict::Stopped {
            self.stopped.get_or_insert(Stop::DeadlineNear);
        }
        let has_died = matches!(verdict, Verdict::Quiet | Verdict::Failed) && self.stopped.is_none();
        if has_died && self.replace_the_dead_man().is_err() {
            self.stop(Stop::Unwatched);
        }
    }

    fn replace_the_dead_man(&mut self) -> io::Result<()> {
        self.replacements += 1;
        if self.replacements > REPLACEMENTS {
            return Err(io::Error::other("it died too often"));
        }
        let lost = lost_pipe::write_end(&self.lost_read)?;
        let (deadline, session) = (self.hold.deadline(), self.client.backend().session());
        let child = Some(pid(&self.child).as_raw());
        self.leash = Leash::start(self.leash.terms(), deadline, child, session, lost)?;
        Ok(())
    }

    /// A child stopped for want of the terminal gets it; one stopped from the keyboard stops us too, so that the
    /// shell above can go on.
    fn see_to_the_terminal(&self) {
        let Some(terminal) = &self.terminal else { return };
        let leader = pid(&self.child);
        let news = waitid(Id::Pid(leader), WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG);
        let Ok(WaitStatus::Stopped(_, signal)) = news else { return };
        match signal {
            Signal::SIGTTIN | Signal::SIGTTOU if terminal.is_ours() => {
                terminal.lend(leader);
                self.group.signal(Signal::SIGCONT);
            }
            Signal::SIGTSTP | Signal::SIGTTIN | Signal::SIGTTOU if has_a_shell() => {
                terminal.take_back(leader);
                // The whole job, as the keyboard would have it. CONT brings us back, and `hear` the child.
                let _ = killpg(unistd::getpgrp(), Signal::SIGSTOP);
            }
            Signal::SIGTSTP => self.group.signal(Signal::SIGCONT),
            _ => {}
        }
    }

    /// Looks without reaping: while the child is a zombie its number stays its own.
    fn child_has_ended(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        // An error is a status that the wrapper has no name for, such as a real-time signal.
        !matches!(waitid(Id::Pid(pid(&self.child)), flags), Ok(WaitStatus::StillAlive))
    }

    async fn finish(mut self, signals: Signals) -> Ended {
        if let Some(terminal) = &self.terminal {
            terminal.take_back(pid(&self.child));
        }
        let _ = self.leash.tell(Message::Done);
        // If there was still time after that word was said, the dead-man has heard it before its alarm.
        let is_early = self.clock.now() < self.leash.alarm();
        let is_doubtful = self.stopped.is_some() || self.loss.is_some() || !is_early;
        let verdict = if is_doubtful { self.wait_for_the_dead_man(signals).await } else { None };
        let status = self.child.wait().unwrap_or_default();
        let is_in_time = verdict == Some(Verdict::Missed);
        let end = End { status, stopped: self.stopped, loss: self.loss, is_in_time };
        Ended { end, leash: self.leash }
    }

    /// The child has ended, but others of its group or kin may not have. The dead-man knows, and gives them a grace.
    async fn wait_for_the_dead_man(&mut self, mut signals: Signals) -> Option<Verdict> {
        let mut give_up = None;
        let patience = self.leash.terms().grace + PATIENCE;
        loop {
            let is_alive = self.group.is_alive();
            if let Some(verdict) =
                self.leash.ended().filter(|verdict| *verdict != Verdict::Failed || !is_alive)
            {
                if verdict == Verdict::Stopped {
                    self.stopped.get_or_insert(Stop::DeadlineNear);
                }
                return Some(verdict);
            }
            let now = self.clock.now();
            if !is_alive && now >= *give_up.get_or_insert(now.after(patience)) {
                return None;
            }
            tokio::select! {
                signal = signals.next() => if signal != Signal::SIGCHLD { self.group.signal(signal) },
                () = self.clock.pause(Duration::from_millis(20)) => {}
                () = sleep_until(&self.clock, self.kill_at) => self.kill(),
            }
        }
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

/// Whether somebody above us in this session could put us back into the foreground.
fn has_a_shell() -> bool {
    let session = unistd::getsid(None);
    session.is_ok() && session == unistd::getsid(Some(unistd::getppid()))
}

/// Sleeps until then; for ever if there is no such time.
async fn sleep_until(clock: &Clock, then: Option<Instant>) {
    match then {
        Some(then) => clock.sleep_until(then).await,
        None => std::future::pending().await,
    }
}
