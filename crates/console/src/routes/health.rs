//! Whether this process serves, and whether its store answers: for those who start and stop it.

use axum::{extract::State, http::StatusCode};

use crate::console::Console;

pub(super) async fn lives() -> &'static str {
    "ok\n"
}

/// What it found when it looked last; nobody can make the store work by asking often.
pub(super) async fn ready(State(console): State<Console>) -> (StatusCode, &'static str) {
    match console.live().up() {
        Some(true) => (StatusCode::OK, "ok\n"),
        Some(false) => (StatusCode::SERVICE_UNAVAILABLE, "the store cannot be reached\n"),
        None => (StatusCode::SERVICE_UNAVAILABLE, "the store has not been looked at yet\n"),
    }
}
