//! What must fit: the type a function returns, what stands in a key, and the client. Where it does not, the compiler says
//! what is written here.

use std::{fmt::Display, sync::Arc};

use crate::{Client, Error, Result, blocking};

/// A type that can say why the lock could not be had.
#[diagnostic::on_unimplemented(
    message = "a function with `#[locked]` must return a `Result`, and this one returns `{Self}`",
    label = "this cannot say that the lock was not to be had",
    note = "write `-> Result<{Self}, leasehold::Error>`, or any other `Result` whose error has `From<leasehold::Error>`"
)]
pub trait Fails: Sized {
    /// The error.
    fn failed(error: Error) -> Self;

    /// Whether all went well.
    fn is_well(&self) -> bool;
}

/// An error that a lock's errors can be turned into.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot say that the lock was not to be had",
    label = "the error of this function cannot be made from `leasehold::Error`",
    note = "write `impl From<leasehold::Error> for {Self}`; with thiserror, a variant `Lock(#[from] leasehold::Error)`"
)]
pub trait Carries: From<Error> {}

#[diagnostic::do_not_recommend]
impl<E: From<Error>> Carries for E {}

impl<T, E: Carries> Fails for Result<T, E> {
    fn failed(error: Error) -> Self {
        Err(error.into())
    }

    fn is_well(&self) -> bool {
        self.is_ok()
    }
}

/// A type that can say that nothing was done.
#[diagnostic::on_unimplemented(
    message = "`on_busy = skip` returns `Ok(None)` where the lock is busy, and this function returns `{Self}`",
    label = "this cannot say that the function was skipped",
    note = "write `-> Result<Option<T>, E>` and `Ok(Some(…))` in the body; or say what to return: `on_busy = return(…)`"
)]
pub trait Skips: Fails {
    /// What a function returns that was skipped.
    fn skipped() -> Self;
}

impl<T, E: Carries> Skips for Result<Option<T>, E> {
    fn skipped() -> Self {
        Ok(None)
    }
}

/// Something that can stand in a key.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a key",
    label = "an expression in this key has no text",
    note = "what stands in braces must have `Display`: choose a field that has, or call a function that makes a text of it"
)]
pub trait KeyPart: Display {}

#[diagnostic::do_not_recommend]
impl<T: Display + ?Sized> KeyPart for T {}

/// Something that is a client.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a client",
    label = "an `async fn` takes a `leasehold::Client` here",
    note = "write `client = self.locks` where `locks` is a `leasehold::Client`; leave `client` out to use the installed one"
)]
pub trait Locks {
    /// The client.
    fn client(&self) -> Client;
}

impl Locks for Client {
    fn client(&self) -> Client {
        self.clone()
    }
}

#[diagnostic::do_not_recommend]
impl<T: Locks + ?Sized> Locks for &T {
    fn client(&self) -> Client {
        (**self).client()
    }
}

#[diagnostic::do_not_recommend]
impl<T: Locks + ?Sized> Locks for Arc<T> {
    fn client(&self) -> Client {
        (**self).client()
    }
}

/// Something that is a client for synchronous code.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a client for synchronous code",
    label = "a `fn` takes a `leasehold::blocking::Client` here",
    note = "write `client = self.locks` where `locks` comes from `leasehold::blocking::connect`; leave `client` out to use the installed one"
)]
pub trait LocksHere {
    /// The client, if it does not live on a runtime that this would hold up.
    fn client(&self) -> Result<Client>;
}

impl LocksHere for blocking::Client {
    fn client(&self) -> Result<Client> {
        Ok(self.asynchronous().clone())
    }
}

#[diagnostic::do_not_recommend]
impl LocksHere for Client {
    fn client(&self) -> Result<Client> {
        super::here(Ok(self.clone()))
    }
}

#[diagnostic::do_not_recommend]
impl<T: LocksHere + ?Sized> LocksHere for &T {
    fn client(&self) -> Result<Client> {
        (**self).client()
    }
}

#[diagnostic::do_not_recommend]
impl<T: LocksHere + ?Sized> LocksHere for Arc<T> {
    fn client(&self) -> Result<Client> {
        (**self).client()
    }
}
