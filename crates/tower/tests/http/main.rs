//! The layer in a real service: alone by `oneshot`, and under axum over real sockets, on the memory store and on Redis.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

mod layer;
mod served;
mod service;
mod wire;
