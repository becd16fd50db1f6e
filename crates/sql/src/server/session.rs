//! The session of an open store: a lock of the database's own that ends with the connection that took it.
//!
//! Where it is asked for, what a store holds and waits for bears its session's id, and ends with it: whoever finds a
//! dead one in the way goes on at once, rather than when the lease ends. Others tell whether it lives by whether the lock
//! of that id is taken.
//!
//! The server gives up a session that it has not heard of for a while. A grant is therefore never longer than from the
//! last sign of life that was answered, counted from before it was sent, to the earliest end that the server could put to
//! the session: who is cut off stops believing before anybody else can find the session dead.
//!
//! It does not help where the server itself ends the session while its holder goes on: by a restart, or by an
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

/// How long until a lost session is taken up again.
const REST: Duration = Duration::from_millis(200);

/// How to hold a session's lock.
pub(crate) trait Linker: Send + Sync + 'static {
    /// The connection that has it.
    type Link: Send + 'static;

    /// Takes the lock of this session on a connection of its own.
    fn link(&self, own: ClientId) -> impl Future<Output = Tried<Self::Link>> + Send;

    /// Gives a sign of life; an error if the lock is not ours any more.
    fn beat(&self, link: &mut Self::Link, own: ClientId) -> impl Future<Output = Tried<()>> + Send;
}

/// A session, kept by a task that ends when it is stopped or dropped.
pub struct Session {
    own: ClientId,
    end: End,
    task: JoinHandle<()>,
}

/// The earliest end that the server could put to it, if it is known to have begun.
type End = Arc<Mutex<Option<Instant>>>;

impl Session {
    /// Begins a session, which the server gives up `patience` after it last heard of it, and not before.
    #[expect(clippy::disallowed_methods, reason = "it belongs to the store and ends with it")]
    pub(crate) async fn begin<L: Linker>(linker: L, patience: Duration) -> Result<Self> {
        let own = ClientId::random();
        let sent = Clock::boot().now();
        let link = linker.link(own).await.map_err(Failure::into_error)?;
        let end = End::new(Mutex::new(Some(sent.after(patience))));
        let task = tokio::spawn(keep(linker, link, own, end.clone(), patience));
        Ok(Self { own, end, task })
    }

    pub(super) fn id(&self) -> ClientId {
        self.own
    }

    /// Whether something may be asked for in its name.
    pub(super) fn alive(&self) -> Result<()> {
        if self.left(Clock::boot().now()).is_some() {
            return Ok(());
        }
        let message = "our session with the server is gone and not back yet; try again";
        Err(Error::new(ErrorKind::Unavailable, Operation::Inspect, message))
    }

    /// An answer to what was sent then: nothing is granted for longer than the session surely lasts.
    pub(super) fn bounded(&self, sent: Instant, mut answer: Answer) -> Result<Answer> {
        let granted = match &mut answer {
            Answer::Attempt(Attempt::Granted(grant)) => &mut grant.granted,
            Answer::Renewal(Renewal::Renewed { granted }) => granted,
            _ => return Ok(answer),
        };
        let message =
            "our session with the server ended meanwhile; whether what it was granted lasts is not known";
        let unknown = || Error::new(ErrorKind::Indeterminate, Operation::Inspect, message);
        *granted = (*granted).min(self.left(sent).ok_or_else(unknown)?);
        Ok(answer)
    }

    fn left(&self, from: Instant) -> Option<Duration> {
        let end = *self.end.lock().unwrap_or_else(PoisonError::into_inner);
        end.map(|end| from.until(end)).filter(|left| !left.is_zero())
    }

    pub(crate) fn stop(&self) {
        self.task.abort();
        set(&self.end, None);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("own", &self.own).finish_non_exhaustive()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Gives signs of life, and takes the session up again when it was lost: what it holds may still be there.
async fn keep<L: Linker>(linker: L, mut link: L::Link, own: ClientId, end: End, patience: Duration) {
    loop {
        while sign_of_life(&linker, &mut link, own, &end, patience).await {}
        set(&end, None);
        drop(link);
        link = loop {
            let sent = Clock::boot().now();
            match timeout(patience, linker.link(own)).await {
                Ok(Ok(link)) => {
                    set(&end, Some(sent.after(patience)));
                    break link;
                }
                Ok(Err(failure)) => {
                    tracing::debug!(error = %failure.into_error(), "the session is not back yet");
                    sleep(REST).await;
                }
                Err(_) => tracing::debug!("the session is not back yet: nobody answers"),
            }
        };
    }
}

/// Says whether the session goes on. Until nobody can believe in what it was granted any more the connection is kept, though it
/// does not answer: to close it would let others in at once.
async fn sign_of_life<L: Linker>(
    linker: &L,
    link: &mut L::Link,
    own: ClientId,
    end: &End,
    patience: Duration,
) -> bool {
    sleep(patience / 4).await;
    let sent = Clock::boot().now();
    let last = end.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or(sent);
    let beats = async {
        match linker.beat(link, own).await {
            // A statement may have been cut short; what is closed fails again.
            Err(_) => linker.beat(link, own).await,
            beaten => beaten,
        }
    };
    match timeout(sent.until(last), beats).await {
        Ok(Ok(())) => {
            set(end, Some(sent.after(patience)));
            true
        }
        Ok(Err(failure)) => {
            tracing::debug!(error = %failure.into_error(), "the session is lost; it is taken up again");
            false
        }
        Err(_) => {
            tracing::debug!("the server did not answer in time; the session is taken up again");
            false
        }
    }
}

fn set(end: &End, to: Option<Instant>) {
    *end.lock().unwrap_or_else(PoisonError::into_inner) = to;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use leasehold_core::backend::Grant;

    use super::*;

    /// A server that can be switched off, or fall silent.
    #[derive(Clone, Default)]
    struct Switch {
        off: Arc<AtomicBool>,
        silent: Arc<AtomicBool>,
        closed: Arc<AtomicBool>,
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

        async fn beat(&self, _link: &mut Open, _own: ClientId) -> Tried<()> {
            if self.silent.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            let gone = || Error::new(ErrorKind::Unavailable, Operation::Inspect, "gone");
            if self.off.load(Ordering::Relaxed) { Err(gone().into()) } else { Ok(()) }
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
        let sent = Clock::boot().now();
        let Ok(Answer::Attempt(Attempt::Granted(grant))) = session.bounded(sent, granted()) else {
            panic!("the session lives")
        };
        assert!(grant.granted <= Duration::from_secs(60), "{grant:?}");
        let late = sent.after(Duration::from_secs(61));
        assert_eq!(session.bounded(late, granted()).unwrap_err().kind(), ErrorKind::Indeterminate);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_session_grants_nothing_until_it_is_taken_up_again() {
        let (session, switch) = begun().await;
        switch.off.store(true, Ordering::Relaxed);
        sleep(Duration::from_secs(16)).await;
        assert_eq!(session.alive().unwrap_err().kind(), ErrorKind::Unavailable);
        switch.off.store(false, Ordering::Relaxed);
        sleep(REST * 2).await;
        session.alive().expect("it is back");
        session.stop();
        assert!(session.alive().is_err(), "it was stopped");
    }

    /// A close would be the end of the session, which holders still count on.
    #[tokio::test(start_paused = true)]
    async fn a_connection_that_does_not_answer_is_not_closed_before_the_session_could_end() {
        let (_session, switch) = begun().await;
        switch.silent.store(true, Ordering::Relaxed);
        sleep(Duration::from_secs(15 + 50)).await;
        assert!(!switch.closed.load(Ordering::Relaxed), "holders may still believe");
        sleep(Duration::from_secs(15)).await;
        assert!(switch.closed.load(Ordering::Relaxed));
    }
}
