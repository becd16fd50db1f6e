//! Work that one of a fleet does, once per slot, for synchronous code.

use std::fmt;

use super::wait;
use crate::{CatchUp, Error, JobState, Result, Run, Span, Turn, job::Paused};

front! {
    /// A job, for synchronous code; see [`leasehold::Job`](crate::Job).
    ///
    /// A thread cannot be stopped: work that takes longer than [`at_most`](Self::at_most) goes on, and another may begin the
    /// next slot meanwhile. Ask [`Run::check`] before each step that matters.
    #[derive(Clone, Debug)]
    #[must_use = "a job does nothing until it is run"]
    Job(crate::Job) like Job
    options {
        schedule(cron: &str);
        zone(zone: &str);
        at_most(at_most: impl Into<Span>);
        at_least(at_least: impl Into<Span>);
        jitter(jitter: impl Into<Span>);
        catch_up(catch_up: CatchUp);
        ttl(ttl: impl Into<Span>);
        label(label: &str);
    }
    looks {
        name() -> &str;
    }
    waits {
        pause(reason: &str) -> Result<Option<Paused>>;
        pause_as(by: &str, reason: &str) -> Result<Option<Paused>>;
        resume() -> Result<Option<Paused>>;
        resume_as(by: &str) -> Result<Option<Paused>>;
        resume_from_now() -> Result<bool>;
        forget() -> Result<bool>;
        state() -> Result<Option<JobState>>;
    }
}

impl Job {
    /// Runs the job on this thread at its slots, until the client is shut down.
    ///
    /// # Errors
    /// As for [`run`](crate::Job::run).
    pub fn run<T, E: fmt::Display>(&self, work: impl Fn(&Run) -> Result<T, E>) -> Result<()> {
        wait(self.0.clone().finish_on_loss().run(async |run: &Run| work(run)))
    }

    /// Waits for the next slot that falls to this process, and runs it on this thread: [`run`](Self::run) is this over and
    /// over.
    ///
    /// # Errors
    /// As for [`run_next`](crate::Job::run_next).
    pub fn run_next<T, E>(&self, work: impl FnOnce(&Run) -> Result<T, E>) -> Result<T, E>
    where
        E: From<Error> + fmt::Display,
    {
        wait(self.0.clone().finish_on_loss().run_next(async |run: &Run| work(run)))
    }

    /// Runs the job on this thread now, if it is to be run now and nobody else does.
    ///
    /// # Errors
    /// As for [`run_once`](crate::Job::run_once).
    pub fn run_once<T, E>(&self, work: impl FnOnce(&Run) -> Result<T, E>) -> Result<Turn<T>, E>
    where
        E: From<Error> + fmt::Display,
    {
        wait(self.0.clone().finish_on_loss().run_once(async |run: &Run| work(run)))
    }
}
