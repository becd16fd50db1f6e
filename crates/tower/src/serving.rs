//! One request under the layer, as a future: the lock is asked for, the inner service works, and what it answers takes the
//! lock along.
//!
//! It allocates nothing of its own unless something has to be waited for: a lock that is to be had on the spot and a service
//! that answers at once cost neither a box nor a clone.

use std::{
    fmt,
    pin::{Pin, pin},
    task::{Context, Poll, ready},
    time::Duration,
};

use http::{Request, Response};
use leasehold_core::backend::Loss;
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::{
    body::LockedBody,
    held::Tenure,
    layer::FENCE,
    problem::{self, Problem},
};

/// Acquires the lock of a request, or says why not.
pub(crate) type Begin = Pin<Box<dyn Future<Output = Result<Tenure, Problem>> + Send>>;

pin_project! {
    /// What a [`LockService`](crate::LockService) does for one request. Dropped at any point it drops the inner service's
    /// work first and gives the lock back then.
    pub struct LockFuture<S, Q>
    where
        S: Service<Request<Q>>,
    {
        // Before the tenure: what is inside is dropped under the lock.
        #[pin]
        stage: Stage<S, Q, S::Future>,
        // Only once the work had to be waited for.
        loss: Option<Pin<Box<dyn Future<Output = Loss> + Send>>>,
        tenure: Option<Tenure>,
        retry_after: Duration,
    }
}

pin_project! {
    #[project = StageParts]
    enum Stage<S, Q, F> {
        // The service is the one that said it is ready.
        Asking { begin: Begin, ready: S, request: Option<Request<Q>> },
        Working { #[pin] work: F },
        Refused { problem: Option<Problem> },
        Over,
    }
}

impl<S, Q> LockFuture<S, Q>
where
    S: Service<Request<Q>>,
{
    fn new(stage: Stage<S, Q, S::Future>, tenure: Option<Tenure>, retry_after: Duration) -> Self {
        Self { stage, loss: None, tenure, retry_after }
    }

    /// Answered without the inner service.
    pub(crate) fn refused(problem: Problem) -> Self {
        Self::new(Stage::Refused { problem: Some(problem) }, None, Duration::ZERO)
    }

    /// Served without any lock.
    pub(crate) fn free(work: S::Future) -> Self {
        Self::new(Stage::Working { work }, None, Duration::ZERO)
    }

    /// Served under a lock that is held.
    pub(crate) fn under(tenure: Tenure, work: S::Future, retry_after: Duration) -> Self {
        Self::new(Stage::Working { work }, Some(tenure), retry_after)
    }

    /// Served once the lock is held.
    pub(crate) fn asking(begin: Begin, ready: S, request: Request<Q>, retry_after: Duration) -> Self {
        Self::new(Stage::Asking { begin, ready, request: Some(request) }, None, retry_after)
    }
}

impl<S, Q, B> Future for LockFuture<S, Q>
where
    S: Service<Request<Q>, Response = Response<B>>,
{
    type Output = Result<Response<LockedBody<B>>, S::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let work = match this.stage.as_mut().project() {
                StageParts::Asking { begin, ready, request } => {
                    let next = match ready!(begin.as_mut().poll(context)) {
                        Ok(tenure) => {
                            let mut request = request.take().expect("a request is served once");
                            request.extensions_mut().insert(tenure.held());
                            let work = ready.call(request);
                            *this.tenure = Some(tenure);
                            Stage::Working { work }
                        }
                        Err(problem) => Stage::Refused { problem: Some(problem) },
                    };
                    this.stage.set(next);
                    continue;
                }
                StageParts::Refused { problem } => {
                    let problem = problem.take().expect("a future is not polled after it is done");
                    return Poll::Ready(Ok(problem.answer()));
                }
                StageParts::Working { work } => work,
                StageParts::Over => panic!("a future is not polled after it is done"),
            };
            if this.tenure.is_some() {
                // A lock that is had on the spot never makes us wait; a task that only serves such must still let others run.
                ready!(pin!(tokio::task::consume_budget()).poll(context));
            }
            let worked = ready!(under(this.tenure.as_ref(), this.loss, work, context));
            // What is done is dropped under the lock.
            this.stage.set(Stage::Over);
            let tenure = this.tenure.take();
            return Poll::Ready(match worked {
                Ok(response) => response.map(|response| taken_along(tenure, response)),
                Err(loss) => Ok(problem::lost(&loss, *this.retry_after).answer()),
            });
        }
    }
}

/// Works as long as the lock is held; says how it was lost otherwise.
fn under<T>(
    tenure: Option<&Tenure>,
    loss: &mut Option<Pin<Box<dyn Future<Output = Loss> + Send>>>,
    work: Pin<&mut impl Future<Output = T>>,
    context: &mut Context<'_>,
) -> Poll<Result<T, Loss>> {
    let Some(tenure) = tenure else { return work.poll(context).map(Ok) };
    // First the lock is looked at, so that nothing is done without it. Only who has to wait listens for its loss.
    if tenure.check().is_ok()
        && let Poll::Ready(done) = work.poll(context)
    {
        return Poll::Ready(Ok(done));
    }
    let loss = loss.get_or_insert_with(|| {
        let watch = tenure.watch();
        Box::pin(async move { watch.lost().await })
    });
    loss.as_mut().poll(context).map(Err)
}

/// The lock is held on until the body of the response is dropped.
fn taken_along<B>(tenure: Option<Tenure>, mut response: Response<B>) -> Response<LockedBody<B>> {
    let Some(tenure) = tenure else { return response.map(LockedBody::free) };
    response.headers_mut().insert(FENCE, tenure.fence().into());
    response.map(|body| LockedBody::under(tenure, body))
}

impl<S, Q> fmt::Debug for LockFuture<S, Q>
where
    S: Service<Request<Q>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockFuture").field("tenure", &self.tenure).finish_non_exhaustive()
    }
}
