//! One command under way.
//!
//! It is on its way to the child as soon as there is a [`Call`]; awaiting it only waits for the answer. So a thread
//! that is to wait for a lock is told so first, and awaited when it should have got it.

use std::{
    fmt,
    future::{Future, IntoFuture},
    marker::PhantomData,
    pin::Pin,
    time::Duration,
};

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::oneshot::{self, error::TryRecvError};

use crate::{moment::Moment, pipe::Answer};

/// How long anything may take. Longer than any lease in a test: what has not happened by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command under way, answered with a `T`. Dropping it does not stop the command; the answer is thrown away.
#[derive(Debug)]
#[must_use = "the answer may be that it failed"]
pub struct Call<T> {
    said: String,
    answer: Option<Answer>,
    answers: oneshot::Receiver<Answer>,
    kind: PhantomData<fn() -> T>,
}

/// What a command returned, and when it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done<T> {
    /// What Redisson returned.
    pub value: T,
    /// When the thread began with it.
    pub began: Moment,
    /// When it was done.
    pub ended: Moment,
}

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError {
    /// Redisson threw an exception.
    Threw {
        /// The command.
        said: String,
        /// The class of the exception, without its package.
        class: String,
        /// What it says.
        message: String,
    },
    /// It is not done, and it has had its time.
    Unfinished {
        /// The command.
        said: String,
    },
    /// The process is gone.
    Gone {
        /// The command.
        said: String,
    },
    /// It answered something that is not of the type expected.
    Odd {
        /// The command.
        said: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl<T: DeserializeOwned> Call<T> {
    pub(crate) fn new(said: String, answers: oneshot::Receiver<Answer>) -> Self {
        Self { said, answer: None, answers, kind: PhantomData }
    }

    /// Whether it is done by now.
    pub fn is_done(&mut self) -> bool {
        if self.answer.is_none() {
            match self.answers.try_recv() {
                Ok(answer) => self.answer = Some(answer),
                // A dead process is done too: awaiting says so at once.
                Err(TryRecvError::Closed) => return true,
                Err(TryRecvError::Empty) => {}
            }
        }
        self.answer.is_some()
    }

    /// Waits for it, but no longer than this.
    ///
    /// # Errors
    /// [`CallError`]; [`CallError::Unfinished`] if it is not done by then. It goes on all the same.
    ///
    /// # Cancel safety
    /// The command goes on; its answer is lost.
    pub async fn within(mut self, patience: Duration) -> Result<Done<T>, CallError> {
        if let Some(answer) = self.answer.take() {
            return done(self.said, answer);
        }
        match tokio::time::timeout(patience, self.answers).await {
            Ok(Ok(answer)) => done(self.said, answer),
            Ok(Err(_)) => Err(CallError::Gone { said: self.said }),
            Err(_) => Err(CallError::Unfinished { said: self.said }),
        }
    }
}

impl<T: DeserializeOwned + 'static> IntoFuture for Call<T> {
    type Output = Result<Done<T>, CallError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.within(PATIENCE))
    }
}

impl CallError {
    /// Whether Redisson said that the thread does not hold the lock.
    pub fn is_not_owner(&self) -> bool {
        matches!(self, Self::Threw { class, .. } if class == "IllegalMonitorStateException")
    }
}

fn done<T: DeserializeOwned>(said: String, answer: Answer) -> Result<Done<T>, CallError> {
    if let Some(class) = answer.error {
        return Err(CallError::Threw { said, class, message: answer.message });
    }
    let value = serde_json::from_value::<T>(answer.value.unwrap_or(Value::Null));
    let value = value.map_err(|error| CallError::Odd { said, reason: error.to_string() })?;
    Ok(Done { value, began: Moment::from_nanos(answer.began), ended: Moment::from_nanos(answer.ended) })
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threw { said, class, message } => write!(f, "`{said}` threw {class}: {message}"),
            Self::Unfinished { said } => write!(f, "`{said}` is not done yet"),
            Self::Gone { said } => write!(f, "`{said}` was not answered: the Java process is gone"),
            Self::Odd { said, reason } => write!(f, "`{said}` was answered oddly: {reason}"),
        }
    }
}

impl std::error::Error for CallError {}
