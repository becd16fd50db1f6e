//! What `#[locked]` and `#[scheduled]` write into a function: not for use by hand.
//!
//! The attribute makes a [`Wanted`] of what it was told and an [`Answer`] of what the function returns. Only who acquired
//! what is wanted can have the answer run a body: [`Acquired`] is the proof, and comes from nowhere else.

mod again;
mod answer;
mod fits;
mod held;
mod wanted;

pub use self::{
    again::{Again, Ends, again, ended},
    answer::Answer,
    fits::{Carries, Fails, KeyPart, Locks, LocksHere, Skips},
    held::{Acquired, Held, held},
    wanted::Wanted,
};
use crate::{Client, Error, ErrorKind, Result, blocking};

/// A part of a key, as text of its own: what does not fit is complained of here and nowhere else.
pub fn part<T: KeyPart + ?Sized>(part: &T) -> String {
    part.to_string()
}

/// The client that an asynchronous function names: a `Result`, since the installed one may be missing.
pub fn client(locks: &(impl Locks + ?Sized)) -> Result<Client> {
    Ok(locks.client())
}

/// The client that a synchronous function names.
pub fn client_here(locks: &(impl LocksHere + ?Sized)) -> Result<Client> {
    locks.client()
}

/// The installed client, for a synchronous function.
pub fn here(client: Result<Client>) -> Result<Client> {
    blocking::Client::of(client?).map(Client::from)
}

/// Whether somebody else has the lock.
pub fn is_busy(error: &Error) -> bool {
    error.kind() == ErrorKind::Busy
}
