//! Leasehold over HTTP: an API, a page, a stream of events and metrics, on one client of one store.
//!
//! [`router`] is everything that answers; it needs no socket. [`Server`] puts it on one, with TLS and limits. What the
//! routes promise is in `API.md`, and for machines at `/api/v1/openapi.json`.
//!
//! Reading order: [`Console`] is what the routes share, `gatekeeper` is what every request passes, `routes` has a file
//! for each thing asked, `store` is how all of them ask the store, [`watch`] sees what changes in a store, `live` looks for all streams at once.
//!
//! It trusts the store, and nobody who calls. Whoever can write to the store can do all that this can.

mod access;
mod console;
mod gatekeeper;
pub mod job_view;
mod live;
mod metrics;
mod page;
mod pressed;
mod problem;
mod rates;
mod routes;
mod seats;
mod series;
mod serve;
mod store;
mod times;
pub mod view;
pub mod watch;

pub use self::{
    access::{Access, Role},
    console::{Console, ConsoleBuilder},
    routes::router,
    serve::{Limits, Peer, Server, Tls},
};
