//! Jobs that were declared with `#[scheduled]`.

use std::{fmt, sync::Arc};

use futures_util::future::try_join_all;

use crate::{
    Error, ErrorKind, Job, Operation, Result, Run, Turn,
    job::{BoxedRun, BoxedWork},
};

/// A job and its work: what a function with [`#[scheduled]`](macro@crate::scheduled) gives. It does nothing until it is run.
#[derive(Clone)]
#[must_use = "a job does nothing until it is run"]
pub struct Scheduled {
    /// Or why there is none: the client is not installed.
    job: Result<Job, Arc<str>>,
    work: Arc<BoxedWork>,
}

impl fmt::Debug for Scheduled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduled").field("job", &self.job).finish_non_exhaustive()
    }
}

impl Scheduled {
    /// For the attribute.
    #[doc(hidden)]
    pub fn new(
        job: Result<Job>,
        work: impl for<'r> Fn(&'r Run) -> BoxedRun<'r> + Send + Sync + 'static,
    ) -> Self {
        Self { job: job.map_err(|error| error.to_string().into()), work: Arc::new(work) }
    }

    /// Runs it at its slots, whenever this process is the one, until the client is shut down: see [`Job::run`].
    ///
    /// # Errors
    /// As for [`Job::run`]; and `Config` if no client is installed.
    ///
    /// # Cancel safety
    /// As for [`Job::run`].
    pub async fn run(&self) -> Result<()> {
        self.job()?.run_boxed(&*self.work).await
    }

    /// Runs the slot that is due now, if one is and nobody has: see [`Job::run_once`]. What the work says of its failure is
    /// in the result.
    ///
    /// # Errors
    /// As for [`Job::run_once`]; and `Config` if no client is installed.
    ///
    /// # Cancel safety
    /// As for [`Job::run_once`].
    pub async fn run_once(&self) -> Result<Turn<Result<(), String>>> {
        let job = self.job()?;
        match job.run_once(async |run| (self.work)(run).await.map_err(Said::Work)).await {
            Ok(Turn::Ran(())) => Ok(Turn::Ran(Ok(()))),
            Ok(Turn::Busy(busy)) => Ok(Turn::Busy(busy)),
            Ok(Turn::NotDue(next)) => Ok(Turn::NotDue(next)),
            Ok(Turn::Resting(until)) => Ok(Turn::Resting(until)),
            Ok(Turn::Paused(paused)) => Ok(Turn::Paused(paused)),
            Ok(_) => Err(Error::new(ErrorKind::Internal, Operation::Job, "a turn of another kind")),
            Err(Said::Work(why)) => Ok(Turn::Ran(Err(why))),
            Err(Said::Store(error)) => Err(error),
        }
    }

    /// The job, to look at its state or to pause it.
    ///
    /// # Errors
    /// `Config` if no client is installed.
    pub fn job(&self) -> Result<&Job> {
        self.job.as_ref().map_err(|why| Error::config(Operation::Job, why.to_string()))
    }
}

/// Who says that a run failed.
enum Said {
    Work(String),
    Store(Error),
}

impl From<Error> for Said {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Work(why) => f.write_str(why),
            Self::Store(error) => error.fmt(f),
        }
    }
}

/// Runs all these jobs side by side, until the client is shut down or one of them cannot go on.
///
/// # Errors
/// The first of them: see [`Job::run`]. A run that fails is no error, it is in the history.
///
/// # Cancel safety
/// As for [`Job::run`].
pub async fn run_all(jobs: impl IntoIterator<Item = Scheduled>) -> Result<()> {
    let jobs: Vec<Scheduled> = jobs.into_iter().collect();
    try_join_all(jobs.iter().map(Scheduled::run)).await.map(drop)
}
