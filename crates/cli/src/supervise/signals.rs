//! Signals to this process: which of them concern us.
//!
//! A signal that was ignored when we were started (`nohup`, a background job of a plain shell) stays ignored: it
//! is not caught, so the child inherits that it is ignored, as it would without us. CHLD is the exception: without
//! it we would not learn how the child ended.

use std::{cell::Cell, future::poll_fn, task::Poll};

use nix::sys::signal::Signal;
use tokio::signal::unix::{self, SignalKind};

use crate::{exit::Failure, procfs};

/// Signals that end a wait for a lock.
pub(crate) const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// Signals that matter besides once there is a child: all but CHLD are passed on to it. Of several that came at
/// once the first of these is heard first; so one that was stopped and continued goes on in the end.
pub(crate) const WITH_CHILD: [Signal; 6] =
    [Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGWINCH, Signal::SIGTSTP, Signal::SIGCONT, Signal::SIGCHLD];

/// Signals that are caught, from now until the process ends.
#[derive(Debug)]
pub(crate) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    /// Catches these, except those that are ignored.
    pub(crate) fn catch(signals: &[Signal]) -> Result<Self, Failure> {
        let mut caught = Self(Vec::new());
        caught.add(signals)?;
        Ok(caught)
    }

    /// Catches these too.
    pub(crate) fn add(&mut self, signals: &[Signal]) -> Result<(), Failure> {
        let ignored = ignored() & !bit(Signal::SIGCHLD);
        for &signal in signals.iter().filter(|signal| ignored & bit(**signal) == 0) {
            let stream = unix::signal(SignalKind::from_raw(signal as i32));
            let stream = stream.map_err(|error| Failure::internal("cannot catch signals", error))?;
            self.0.push((signal, stream));
        }
        Ok(())
    }

    /// The next signal that comes.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (signal, stream) in &mut self.0 {
                if stream.poll_recv(context).is_ready() {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// What the work gives, or the signal that came before.
pub(crate) async fn unless_signalled<T>(
    signals: &mut Signals,
    work: impl Future<Output = T>,
) -> Result<T, Signal> {
    tokio::select! {
        biased;
        signal = signals.next() => Err(signal),
        done = work => Ok(done),
    }
}

/// What the work gives, and the signal that came meanwhile. One that comes while nothing runs ends it.
pub(crate) async fn until_idle<T>(
    signals: &mut Signals,
    is_running: &Cell<bool>,
    work: impl Future<Output = T>,
) -> (Option<T>, Option<Signal>) {
    let (mut work, mut heard) = (std::pin::pin!(work), None);
    loop {
        tokio::select! {
            biased;
            signal = signals.next() => {
                heard = Some(signal);
                if !is_running.get() {
                    return (None, heard);
                }
            }
            done = &mut work => return (Some(done), heard),
        }
    }
}

fn bit(signal: Signal) -> u64 {
    1 << (signal as u32 - 1)
}

/// The set of ignored signals; none where it cannot be known.
fn ignored() -> u64 {
    let status = procfs::read("/proc/self/status").unwrap_or_default();
    parse_ignored(&String::from_utf8_lossy(&status)).unwrap_or(0)
}

fn parse_ignored(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ignored_are_read_from_the_status() {
        let status =
            "Name:\tx\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000000\n";
        let ignored = parse_ignored(status).unwrap();
        assert_ne!(ignored & bit(Signal::SIGHUP), 0);
        assert_ne!(ignored & bit(Signal::SIGPIPE), 0);
        assert_eq!(ignored & bit(Signal::SIGTERM), 0);
    }
}
