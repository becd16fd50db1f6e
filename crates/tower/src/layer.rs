//! The layer: a lock chosen by the request, held from before the inner service is called until the response is over.
//!
//! The inner service never runs without the lock it was to have. What it answers is not looked at.

use std::{
    convert::Infallible,
    fmt, mem,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request, Response, request::Parts};
use http_body::Body;
use leasehold_core::{CallSite, Client, Lock, Outcome, Span};
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    body::{BoxError, LockedBody},
    held::Tenure,
    problem::{self, BusyStatus, Holders, Problem},
    serving::LockFuture,
};

/// The header that carries a fence, both ways.
pub const FENCE: HeaderName = HeaderName::from_static("leasehold-fence");

type Key = dyn Fn(&Parts) -> Result<Option<String>, String> + Send + Sync;
type Made = dyn Fn(&Client, &str, &Parts) -> Lock + Send + Sync;

/// Holds a lock while a request is served: from before the inner service is called until the body of its response is
/// dropped, which a server does once it has taken over the last byte, or the client is gone.
///
/// | what happens | what is answered |
/// |---|---|
/// | there is no key | whatever the inner service answers, without a lock |
/// | the lock is ours | whatever the inner service answers, with the header `Leasehold-Fence`; handlers find a [`Held`](crate::Held) among the extensions |
/// | somebody else has it for longer than [`wait`](Self::wait) | 423 Locked with `Retry-After`, and who has it |
/// | it is lost before there is a response | the inner service is dropped where it stands; 409 Conflict |
/// | it is lost while the body is sent | the body ends with an error, so that the client sees that it is cut off |
/// | the store cannot be reached, the client is shut down | 503 Service Unavailable with `Retry-After` |
/// | the key is refused, or no name for a lock | 400 Bad Request |
///
/// What is not the inner service's answer is `application/problem+json`, with a `kind` for programs. It says of a holder its
/// host, program and label, since when and for how long still; never the lock's name, nor what a store said.
///
/// A client that does not read its response keeps the lock: give it an end by [`max_hold`](Self::max_hold). A release is not
/// waited for, so a client that asks again at once can come before it: without any [`wait`](Self::wait) it may find itself.
/// On the memory store, with a handler that does nothing and a key for each request, it cost 7 and 10 % of the requests per second in
/// two runs of `cargo bench --package leasehold-tower`.
///
/// The functions that choose the lock run when the service is called, and a lock within the process is taken there if it is
/// free: a response that is asked for and never polled keeps it until it is dropped.
///
/// A connection that is upgraded is under the lock no more. Of two layers, one in the other, handlers see the inner one's lock
/// and clients the outer one's fence.
///
/// # Examples
/// ```
/// # use leasehold_core::{Client, backend::Memory};
/// # use leasehold_tower::{Held, LockLayer};
/// use axum::{Extension, Router, http::request::Parts, routing::post};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// # let locks = Client::new(Memory::new());
/// let one_at_a_time = LockLayer::checked(&locks, |request: &Parts| {
///     let order = request.uri.path().strip_prefix("/orders/").and_then(|id| id.parse::<u64>().ok());
///     order.map(|order| Some(format!("order:{order}"))).ok_or("the id of an order is a number, in digits")
/// });
/// let app: Router = Router::new()
///     .route("/orders/{id}", post(async |Extension(held): Extension<Held>| format!("fence {}", held.fence())))
///     .layer(one_at_a_time.wait("2s"));
/// # drop(app) }
/// ```
#[derive(Clone)]
#[must_use = "a layer does nothing until it is put on a service"]
pub struct LockLayer(Arc<Set>);

/// How a layer is set. Shared by all services it is put on: a router puts it on anew for every connection.
#[derive(Clone)]
struct Set {
    client: Client,
    key: Arc<Key>,
    made: Option<Arc<Made>>,
    wait: Option<Span>,
    ttl: Option<Span>,
    max_hold: Option<Span>,
    busy: BusyStatus,
    retry_after: Duration,
    holders: Holders,
    incoming: Incoming,
    location: CallSite,
}

/// What becomes of a fence that a request brings along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Incoming {
    Stripped,
    Trusted,
}

/// A service under a [`LockLayer`].
#[derive(Clone, Debug)]
pub struct LockService<S> {
    inner: S,
    layer: LockLayer,
}

impl LockLayer {
    /// A lock of this client, by the name that `key` makes of a request; none for `None`.
    ///
    /// The path is as it was sent, and a router may read more into it: to axum's `Path`, `/orders/%34%32` and `/orders/042` are
    /// order 42 too. Make the name of what the handler will see, such as the number, and refuse the rest by
    /// [`checked`](Self::checked): `None` serves a request without any lock.
    #[track_caller]
    pub fn new<K>(client: &Client, key: K) -> Self
    where
        K: Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    {
        Self::checked(client, move |request| Ok::<_, Infallible>(key(request)))
    }

    /// As [`new`](Self::new), where a request can be refused: with 400, and this error as the reason its client reads.
    #[track_caller]
    pub fn checked<K, E>(client: &Client, key: K) -> Self
    where
        K: Fn(&Parts) -> Result<Option<String>, E> + Send + Sync + 'static,
        E: fmt::Display,
    {
        Self(Arc::new(Set {
            client: client.clone(),
            key: Arc::new(move |request| key(request).map_err(|error| error.to_string())),
            made: None,
            wait: None,
            ttl: None,
            max_hold: None,
            busy: BusyStatus::Locked,
            retry_after: Duration::from_secs(1),
            holders: Holders::Shown,
            incoming: Incoming::Stripped,
            location: CallSite::caller(),
        }))
    }

    fn set(&mut self) -> &mut Set {
        Arc::make_mut(&mut self.0)
    }

    /// How long a request stands in line. Without it, not at all.
    pub fn wait(mut self, wait: impl Into<Span>) -> Self {
        self.set().wait = Some(wait.into());
        self
    }

    /// The lease, as of a [`Lock`].
    pub fn ttl(mut self, ttl: impl Into<Span>) -> Self {
        self.set().ttl = Some(ttl.into());
        self
    }

    /// After how long the lock is lost, whatever the request is doing then.
    pub fn max_hold(mut self, max_hold: impl Into<Span>) -> Self {
        self.set().max_hold = Some(max_hold.into());
        self
    }

    /// Makes the lock of a name, where it is to be another than an exclusive one: shared for those who only read, fair,
    /// with a label.
    ///
    /// ```
    /// # use leasehold_core::{Client, backend::Memory};
    /// # use leasehold_tower::LockLayer;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// # let locks = Client::new(Memory::new());
    /// # let layer = LockLayer::new(&locks, |_| None);
    /// let layer = layer.lock_with(|locks, name, request| {
    ///     let lock = locks.rwlock(name);
    ///     if request.method.is_safe() { lock.read() } else { lock.write() }
    /// });
    /// # drop(layer) }
    /// ```
    pub fn lock_with<F>(mut self, made: F) -> Self
    where
        F: Fn(&Client, &str, &Parts) -> Lock + Send + Sync + 'static,
    {
        self.set().made = Some(Arc::new(made));
        self
    }

    /// What to answer when somebody else has the lock.
    pub fn busy_status(mut self, status: BusyStatus) -> Self {
        self.set().busy = status;
        self
    }

    /// When to ask again, in `Retry-After`: in a second unless said, and in whole seconds.
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.set().retry_after = after;
        self
    }

    /// Does not say who has the lock: for clients whom hosts and programs are no business of.
    pub fn hide_holders(mut self) -> Self {
        self.set().holders = Holders::Hidden;
        self
    }

    /// Lets a `Leasehold-Fence` that a request brings along through to the inner service, such as to a [`FenceGate`].
    /// Without it that header is taken off: anybody can make one up. Only where all who can ask are trusted.
    ///
    /// [`FenceGate`]: crate::FenceGate
    pub fn trust_incoming_fence(mut self) -> Self {
        self.set().incoming = Incoming::Trusted;
        self
    }
}

impl Set {
    /// The lock that this request needs.
    fn lock_for(&self, request: &Parts) -> Result<Option<Lock>, Problem> {
        let Some(name) = (self.key)(request).map_err(Problem::refused)? else { return Ok(None) };
        let mut lock = match &self.made {
            Some(made) => made(&self.client, &name, request),
            None => self.client.lock(&name).asked_at(self.location.clone()),
        };
        if let Some(wait) = &self.wait {
            lock = lock.wait(wait.clone());
        }
        if let Some(ttl) = &self.ttl {
            lock = lock.ttl(ttl.clone());
        }
        if let Some(max_hold) = &self.max_hold {
            lock = lock.max_hold(max_hold.clone());
        }
        Ok(Some(lock))
    }

    /// Acquires it, or says why not.
    async fn begin(&self, lock: &Lock) -> Result<Tenure, Problem> {
        match lock.attempt().await {
            Ok(Outcome::Held(guard)) => Ok(Tenure::new(guard)),
            Ok(Outcome::Busy(busy)) => {
                Err(Problem::busy(&busy, self.busy, self.holders).after(self.retry_after))
            }
            Err(error) => Err(problem::failed(&error, self.retry_after)),
        }
    }
}

impl Incoming {
    fn clean(self, headers: &mut HeaderMap) {
        if self == Self::Stripped {
            headers.remove(FENCE);
        }
    }
}

impl<S> Layer<S> for LockLayer {
    type Service = LockService<S>;

    fn layer(&self, inner: S) -> LockService<S> {
        LockService { inner, layer: self.clone() }
    }
}

impl<S, Q, B> Service<Request<Q>> for LockService<S>
where
    S: Service<Request<Q>, Response = Response<B>> + Clone,
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Response = Response<LockedBody<B>>;
    type Error = S::Error;
    type Future = LockFuture<S, Q>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let (mut parts, body) = request.into_parts();
        let set = &self.layer.0;
        set.incoming.clean(&mut parts.headers);
        let lock = match set.lock_for(&parts) {
            Ok(Some(lock)) => lock,
            Ok(None) => return LockFuture::free(self.inner.call(Request::from_parts(parts, body))),
            Err(problem) => {
                // Whatever it set aside for this request when it said that it is ready, it gets back.
                self.inner = self.inner.clone();
                return LockFuture::refused(problem);
            }
        };
        if let Some(guard) = lock.try_now() {
            let tenure = Tenure::new(guard);
            parts.extensions.insert(tenure.held());
            let work = self.inner.call(Request::from_parts(parts, body));
            return LockFuture::under(tenure, work, set.retry_after);
        }
        let own = set.clone();
        let begin = Box::pin(async move { own.begin(&lock).await });
        let retry_after = set.retry_after;
        // The one that said it is ready is the one to be called; a clone of it may not be.
        let next = self.inner.clone();
        let ready = mem::replace(&mut self.inner, next);
        LockFuture::asking(begin, ready, Request::from_parts(parts, body), retry_after)
    }
}

impl fmt::Debug for LockLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Set { client, wait, ttl, max_hold, busy, incoming, location, .. } = &*self.0;
        let mut out = f.debug_struct("LockLayer");
        out.field("client", client).field("wait", wait).field("ttl", ttl).field("max_hold", max_hold);
        out.field("busy", busy)
            .field("incoming", incoming)
            .field("location", location)
            .finish_non_exhaustive()
    }
}
