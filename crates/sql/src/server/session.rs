//! The session of an open store: a lock of the database's own that ends with the connection that took it.
//!
//! Where it is asked for, what a store holds and waits for bears its session's id, and ends with it: whoever finds a
//! dead one in the way goes on at once, rather than when the lease ends. Others tell whether it lives by whether the lock
//! of that id is taken.
//!
//! The server gives up a session that it has not heard of for a while. A grant is therefore never longer than from the
//! last sign of life that was answered, counted from before it was sent, to the earliest end that the server could put to
//! the session: who is cut off stops believing before anybody else can find the session dead. For the same reason we never
//! close a connection before that end by ourselves.
//!
//! A connection that was lost is followed by another, with a session of another id. What bears the old one can be taken by
//! anybody from the moment it is lost; what nobody has taken bears the new one once its row is written again. An answer to
//! what was asked in the name of the old one is not believed.
//!
//! It does not help where the server itself ends the session while its holder goes on: by a restart, a failover, or by an
//! operator's hand. The holder hears of that by its next renewal, and by its fence it is known to be behind.

use std::{
    fmt,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use leasehold_core::{
    ClientId, Error, ErrorKind, Operation, Result,
    backend::{Attempt, Renewal, record::Answer},
    time::{Clock, Instant},
};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{Failure, Tried};

/// How long until a lost session is followed by another, and until a sign of life that failed is repeated.
const REST: Duration = Duration::from_millis(200);

/// The longest pause between two signs of life.
const BEAT: Duration = Duration::from_secs(3);

/// How long it may at least take to begin.
const BEGIN: Duration = Duration::from_secs(10);

/// How to hold a session's lock.
pub(crate) trait Linker: Send + Sync + 'static {
    /// The connection that has it.
    type Link: Send + 'static;

    /// Takes the lock of this session on a connection of its own.
    fn link(&self, own: ClientId) -> impl Future<Output = Tried<Self::Link>> + Send;

    /// Gives a sign of life. Says whether the lock is still ours; an error leaves that open.
    fn beat(&self, link: &mut Self::Link, own: ClientId) -> impl Future<Output = Tried<bool>> + Send;

    /// Completes when the connection has ended, where that is noticed without asking.
    fn ended(&self, link: &mut Self::Link) -> impl Future<Output = ()> + Send;

    /// Whether the connection is of no more use.
    fn is_closed(&self, link: &Self::Link) -> bool;
}

/// A session, kept by a task that ends when it is stopped or dropped.
pub struct Session {
    now: Now,
    task: JoinHandle<()>,
}

/// What is known to live at this moment.
type Now = Arc<Mutex<Option<Living>>>;

/// One session, and the earliest end that the server could put to it.
#[derive(Clone, Copy, Debug)]
struct Living {
    own: ClientId,
    end: Instant,
}

impl Session {
    /// Begins a session, which the server gives up `patience` after it last heard of it, and not before.
    #[expect(clippy::disallowed_methods, reason = "it belongs to the store and ends with it")]
    pub(crate) async fn begin<L: Linker>(linker: L, patience: Duration) -> Result<Self> {
        let (link, living) = linked(&linker, patience).await.map_err(Failure::into_error)?;
        let now = Now::new(Mutex::new(Some(living)));
        let task = tokio::spawn(keep(linker, (link, living), now.clone(), patience));
        Ok(Self { now, task })
    }

    /// The one in whose name something may be asked for, unless it is gone and not followed by another yet.
    pub(super) fn id(&self) -> Option<ClientId> {
        let now = Clock::boot().now();
        self.living().filter(|living| !now.until(living.end).is_zero()).map(|living| living.own)
    }

    /// An answer to what was sent then in the name of `own`: nothing is granted for longer than that session surely lasts.
    pub(super) fn bounded(&self, own: Option<ClientId>, sent: Instant, mut answer: Answer) -> Result<Answer> {
        let granted = match &mut answer {
            Answer::Attempt(Attempt::Granted(grant)) => &mut grant.granted,
            Answer::Renewal(Renewal::Renewed { granted }) => granted,
            _ => return Ok(answer),
        };
        let living = self.living().filter(|living| Some(living.own) == own);
        let left = living.map(|living| sent.until(living.end)).filter(|left| !left.is_zero());
        let message =
            "our session with the server ended meanwhile; whether what it was granted lasts is not known";
        let unknown = || Error::new(ErrorKind::Indeterminate, Operation::Inspect, message);
        *granted = (*granted).min(left.ok_or_else(unknown)?);
        Ok(answer)
    }

    fn living(&self) -> Option<Living> {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stop(&self) {
        self.task.abort();
        set(&self.now, None);
    }
}

/// Why nothing can be asked for in a session's name.
pub(super) fn gone() -> Error {
    let message = "our session with the server is gone and not back yet; try again";
    Error::new(ErrorKind::Unavailable, Operation::Inspect, message)
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("now", &self.living()).finish_non_exhaustive()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Begins a session of a new id. Its first sign of life is its own: to begin may take longer than it lasts.
async fn linked<L: Linker>(linker: &L, patience: Duration) -> Tried<(L::Link, Living)> {
    let beginning = async {
        let own = ClientId::random();
        let mut link = linker.link(own).await?;
        let sent = Clock::boot().now();
        if !linker.beat(&mut link, own).await? {
            return Err(gone().into());
        }
        Ok((link, Living { own, end: sent.after(patience) }))
    };
    timeout(patience.max(BEGIN), beginning).await.unwrap_or_else(|_| {
        let message = "the server did not begin our session in time; check address and network";
        Err(Error::new(ErrorKind::Unavailable, Operation::Connect, message).into())
    })
}

/// Gives signs of life, and begins another session when one was lost.
async fn keep<L: Linker>(linker: L, begun: (L::Link, Living), now: Now, patience: Duration) {
    let (mut link, mut living) = begun;
    loop {
        set(&now, Some(living));
        last(&linker, &mut link, living, &now, patience).await;
        set(&now, None);
        drop(link);
        (link, living) = loop {
            match linked(&linker, patience).await {
                Ok(begun) => break begun,
                Err(failure) => {
                    tracing::debug!(error = %failure.into_error(), "the session is not back yet");
                    sleep(REST).await;
                }
            }
        };
    }
}

/// Completes when the session is lost. Until nobody can believe in what it was granted any more the connection is kept, though
/// it does not answer, or with errors: to close it would let others in at once.
async fn last<L: Linker>(linker: &L, link: &mut L::Link, mut living: Living, now: &Now, patience: Duration) {
    let mut rest = (patience / 4).min(BEAT);
    loop {
        tokio::select! {
            () = linker.ended(link) => return tracing::debug!("the session's connection has ended"),
            () = sleep(rest) => {}
        }
        let sent = Clock::boot().now();
        match timeout(sent.until(living.end), linker.beat(link, living.own)).await {
            Ok(Ok(true)) => {
                living.end = sent.after(patience);
                set(now, Some(living));
                rest = (patience / 4).min(BEAT);
            }
            Ok(Ok(false)) => return tracing::debug!("the session's lock is not ours any more"),
            Ok(Err(failure)) => {
                set(now, None);
                tracing::debug!(error = %failure.into_error(), "a sign of life failed");
                if linker.is_closed(link) {
                    return;
                }
                rest = REST;
            }
            Err(_) => return tracing::debug!("the server did not answer in time; the session is over"),
        }
    }
}

fn set(now: &Now, to: Option<Living>) {
    *now.lock().unwrap_or_else(PoisonError::into_inner) = to;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use leasehold_core::backend::Grant;
    use tokio::sync::Notify;

    use super::*;

    /// A server that can be switched off, fall silent, or end our connection.
    #[derive(Clone, Default)]
    struct Switch {
        off: Arc<AtomicBool>,
        silent: Arc<AtomicBool>,
        closed: Arc<AtomicBool>,
        end: Arc<Notify>,
    }

    struct Open(Arc<AtomicBool>);

    impl Drop for Open {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    impl Linker for Switch {
        type Link = Open;

        async fn link(&self, own: ClientId) -> Tried<Open> {
            let mut link = Open(self.closed.clone());
            self.beat(&mut link, own).await?;
            Ok(link)
        }

        async fn beat(&self, _link: &mut Open, _own: ClientId) -> Tried<bool> {
            if self.silent.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            let gone = || Error::new(ErrorKind::Unavailable, Operation::Inspect, "gone");
            if self.off.load(Ordering::Relaxed) { Err(gone().into()) } else { Ok(true) }
        }

        async fn ended(&self, _link: &mut Open) {
            self.end.notified().await;
        }

        fn is_closed(&self, _link: &Open) -> bool {
            false
        }
    }

    async fn begun() -> (Session, Switch) {
        let switch = Switch::default();
        let session = Session::begin(switch.clone(), Duration::from_secs(60)).await;
        (session.expect("it is on"), switch)
    }

    fn granted() -> Answer {
        Answer::Attempt(Attempt::Granted(Grant { fence: 1, granted: Duration::from_secs(3600) }))
    }

    #[tokio::test]
    async fn nothing_is_granted_for_longer_than_the_session_surely_lasts() {
        let (session, _switch) = begun().await;
        let (own, sent) = (session.id(), Clock::boot().now());
        let Ok(Answer::Attempt(Attempt::Granted(grant))) = session.bounded(own, sent, granted()) else {
            panic!("the session lives")
        };
        assert!(grant.granted <= Duration::from_secs(60), "{grant:?}");
        let late = sent.after(Duration::from_secs(61));
        assert_eq!(session.bounded(own, late, granted()).unwrap_err().kind(), ErrorKind::Indeterminate);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_session_is_noticed_at_once_and_followed_by_another() {
        let (session, switch) = begun().await;
        let (own, sent) = (session.id(), Clock::boot().now());
        switch.off.store(true, Ordering::Relaxed);
        switch.end.notify_one();
        sleep(Duration::from_millis(1)).await;
        assert_eq!(session.id(), None, "long before the next sign of life");
        switch.off.store(false, Ordering::Relaxed);
        sleep(REST * 2).await;
        assert!(session.id().is_some(), "another has begun");
        assert_ne!(session.id(), own, "what bears the old id is nobody's to believe in");
        let late = session.bounded(own, sent, granted());
        assert_eq!(late.unwrap_err().kind(), ErrorKind::Indeterminate, "it was granted to the old one");
        session.stop();
        assert_eq!(session.id(), None, "it was stopped");
    }

    /// A close would be the end of the session, which holders still count on.
    #[tokio::test(start_paused = true)]
    async fn a_connection_that_does_not_answer_is_not_closed_before_the_session_could_end() {
        let (_session, switch) = begun().await;
        switch.silent.store(true, Ordering::Relaxed);
        sleep(Duration::from_secs(50)).await;
        assert!(!switch.closed.load(Ordering::Relaxed), "holders may still believe");
        sleep(Duration::from_secs(15)).await;
        assert!(switch.closed.load(Ordering::Relaxed));
    }

    #[tokio::test(start_paused = true)]
    async fn errors_grant_nothing_and_do_not_close_the_connection() {
        let (session, switch) = begun().await;
        let own = session.id();
        switch.off.store(true, Ordering::Relaxed);
        sleep(BEAT * 2).await;
        assert_eq!(session.id(), None);
        assert!(!switch.closed.load(Ordering::Relaxed), "holders may still believe");
        switch.off.store(false, Ordering::Relaxed);
        sleep(REST * 2).await;
        assert_eq!(session.id(), own, "it was the same all the time");
    }
}
