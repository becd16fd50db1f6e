//! Whether a candidate is fit to go on: what a health check asks, of an election that may or may not be led by it.

use std::sync::{Arc, PoisonError, Weak};

use crate::{
    engine::hold::{Hold, State},
    sync::Mutex,
};

/// The health of a candidate, made by [`Election::health`](crate::Election::health). Clones are the same.
///
/// One that does not lead is healthy. One that leads is healthy while its lease is renewed: not when a renewal is overdue,
/// nor when the lead is lost and its [`Leadership`](crate::Leadership) is still kept, because what was done under it may go
/// on. A leader that cannot renew is better restarted than left alone. No I/O, so it can be asked at any rate.
///
/// An endpoint for a load balancer or Kubernetes, on any listener:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use leasehold_core::{Client, Error, Health, backend::Memory};
/// # use std::{io::{Read, Write}, net::{TcpListener, TcpStream}};
/// # let locks = Client::new(Memory::new());
/// fn healthz(health: &Health) -> String {
///     let (status, body) = match health.is_healthy() {
///         true => ("200 OK", "ok"),
///         false => ("503 Service Unavailable", "leads, and cannot renew its lease"),
///     };
///     format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
/// }
///
/// let election = locks.election("scheduler");
/// let health = election.health();
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// # let address = listener.local_addr()?;
/// std::thread::spawn(move || {
///     for stream in listener.incoming().flatten() {           // whatever is asked: this serves GET /healthz
///         let mut stream = stream;
///         let _ = stream.read(&mut [0; 1024]).and_then(|_| stream.write_all(healthz(&health).as_bytes()));
///     }
/// });
/// let leadership = election.campaign("10.0.0.7:8080").await?;
/// # let mut stream = TcpStream::connect(address)?;
/// # stream.write_all(b"GET /healthz HTTP/1.1\r\n\r\n")?;
/// # let mut answer = String::new();
/// # stream.read_to_string(&mut answer)?;
/// # assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
/// # leadership.resign().await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<Mutex<Weak<Hold>>>);

impl Health {
    /// Whether the lead, if there is one, is renewed as it should be.
    pub fn is_healthy(&self) -> bool {
        self.state().is_none_or(|state| state == State::Held)
    }

    /// How the lead stands; `None` without one.
    pub fn state(&self) -> Option<State> {
        let hold = self.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        hold.map(|hold| hold.state())
    }

    /// From now on it is about this hold, until the seat is left.
    pub(super) fn take(&self, hold: &Arc<Hold>) -> Seat {
        let seat = Seat { health: self.clone(), hold: Arc::downgrade(hold) };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = seat.hold.clone();
        seat
    }
}

/// Leading, as far as a health check is concerned.
#[derive(Debug)]
pub(super) struct Seat {
    health: Health,
    hold: Weak<Hold>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.health.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Another may have been won since by a clone of the election.
        if taken.ptr_eq(&self.hold) {
            *taken = Weak::new();
        }
    }
}
