//! The body of a response that a lock belongs to: the lock is held until it is dropped.
//!
//! Not until its last frame: what makes a body may still be at work then, such as a transaction that ends as the body is
//! dropped. Whatever is inside is dropped first, and the lock is given back after that.

use std::{
    error::Error as StdError,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use leasehold_core::Error;
use pin_project_lite::pin_project;

use crate::held::{Held, Tenure};

/// What bodies fail with.
pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

pin_project! {
    /// The body of a response from a [`LockService`](crate::LockService): the inner service's, or a problem.
    ///
    /// Dropping it gives the lock back. When the lock is lost it ends with an error of the kind `Lost`.
    pub struct LockedBody<B> {
        // Before the tenure: what is inside is dropped under the lock.
        #[pin]
        content: Content<B>,
        loss: Option<Pin<Box<dyn Future<Output = Error> + Send>>>,
        cut: bool,
        tenure: Option<Tenure>,
    }
}

pin_project! {
    #[project = ContentParts]
    enum Content<B> {
        Inner { #[pin] body: B },
        Problem { text: Option<Bytes> },
    }
}

impl<B> LockedBody<B> {
    /// A body that no lock belongs to.
    pub(crate) fn free(body: B) -> Self {
        Self { content: Content::Inner { body }, loss: None, cut: false, tenure: None }
    }

    pub(crate) fn under(tenure: Tenure, body: B) -> Self {
        Self { tenure: Some(tenure), ..Self::free(body) }
    }

    pub(crate) fn problem(text: Bytes) -> Self {
        Self { content: Content::Problem { text: Some(text) }, loss: None, cut: false, tenure: None }
    }
}

impl<B> Body for LockedBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.project();
        let body = match this.content.project() {
            ContentParts::Problem { text } => {
                return Poll::Ready(text.take().map(|text| Ok(Frame::data(text))));
            }
            ContentParts::Inner { body } => body,
        };
        if *this.cut {
            return Poll::Ready(None);
        }
        // Before the inner body is asked, so that nothing is made without the lock; after it, so that whoever waits is told.
        if let Some(Err(error)) = this.tenure.as_ref().map(Tenure::check) {
            *this.cut = true;
            return Poll::Ready(Some(Err(error.into())));
        }
        if let Poll::Ready(frame) = body.poll_frame(context) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let Some(tenure) = this.tenure else { return Poll::Pending };
        let loss = this.loss.get_or_insert_with(|| Box::pin(lost(tenure.held())));
        loss.as_mut().poll(context).map(|error| {
            *this.cut = true;
            Some(Err(error.into()))
        })
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Inner { body } => self.cut || body.is_end_stream(),
            Content::Problem { text } => text.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Inner { body } => body.size_hint(),
            Content::Problem { text } => {
                SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64))
            }
        }
    }
}

async fn lost(held: Held) -> Error {
    held.lost().await
}

impl<B> fmt::Debug for LockedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockedBody").field("tenure", &self.tenure).finish_non_exhaustive()
    }
}
