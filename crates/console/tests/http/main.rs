//! The console over real HTTP: each test has a server of its own on a free port, and speaks to it over a socket.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod api;
mod client;
mod jobs;
mod numbers;
mod security;
mod streams;
mod tls;
