//! The console over real HTTP: each test has a server of its own on a free port, and speaks to it over a socket.

mod api;
mod client;
mod security;
mod streams;
mod tls;
