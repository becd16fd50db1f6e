//! Leasehold in services: [`LockLayer`] holds a lock while a request is served, [`FenceGate`] and [`checks`] refuse what comes
//! too late.
//!
//! A lock alone cannot stop a handler that was paused *between* a check and its write. So every response under the layer
//! carries its fence, every handler has it as [`Held`], and the resource itself refuses a smaller one than it has seen: in
//! this process by a gate, in a database by one more statement in the transaction of the write.
//!
//! # Going down in order
//!
//! First the server: it takes no more requests, those that are under way end, and each gives its lock back. Then the client:
//! it tells which locks were still held. What they were held for was cut off, and the reason is in the log of those requests.
//!
//! ```no_run
//! # use std::{future::pending, time::Duration};
//! # use leasehold_core::{Client, backend::Memory};
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (locks, app) = (Client::new(Memory::new()), axum::Router::new());
//! # let terminated = pending::<()>;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//! let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
//! let serving = axum::serve(listener, app).with_graceful_shutdown(async { drop(stopped.await) });
//! let mut serving = std::pin::pin!(serving.into_future());
//! tokio::select! {
//!     ended = &mut serving => ended?,
//!     () = terminated() => {
//!         drop(stop);                                                       // no new requests
//!         let _ = tokio::time::timeout(Duration::from_secs(20), &mut serving).await; // those under way have so long
//!     }
//! }
//! let farewell = locks.shutdown("5s").await?;   // stops and tells the rest, releases, closes
//! for name in &farewell.interrupted {
//!     eprintln!("cut off: {name}");
//! }
//! # Ok(()) }
//! ```

mod body;
pub mod checks;
mod gate;
mod held;
mod layer;
mod problem;
mod serving;

pub use crate::{
    body::LockedBody,
    gate::{FenceGate, Refused},
    held::Held,
    layer::{FENCE, LockLayer, LockService},
    problem::BusyStatus,
    serving::LockFuture,
};
