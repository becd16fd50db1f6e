//! What Prometheus reads: how it stands, and what happened since the server started.
//!
//! Names of locks are no labels: they are many, and often somebody's customers.

use std::fmt::Write as _;

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};

use crate::console::Console;

const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) async fn show(State(console): State<Console>) -> Response {
    ([(header::CONTENT_TYPE, FORMAT)], text(&console)).into_response()
}

fn text(console: &Console) -> String {
    let (state, busy, (streams, _)) = (console.live().state(), console.client().stats(), console.streams());
    let seconds = |duration: Option<std::time::Duration>| duration.unwrap_or_default().as_secs_f64();
    let seen = state.seen.as_ref();
    let (counts, total) = (state.counts, state.total);
    let up = f64::from(u8::from(console.live().up().unwrap_or(false)));
    let mut out = String::new();
    let mut gauge = |name: &str, help: &str, value: f64| metric(&mut out, "gauge", name, help, value);
    gauge("lock_backend_up", "Whether the store answered the last look.", up);
    gauge("lock_names", "Names in use, as last seen.", whole(counts.names));
    gauge("lock_held", "Names that somebody holds, as last seen.", whole(counts.held));
    gauge("lock_holders", "Acquisitions that are held, as last seen.", whole(counts.holders));
    gauge("lock_waiters", "Claims that wait, as last seen.", whole(counts.waiting));
    gauge(
        "lock_expiring",
        "Holds with less than ten seconds of lease left, as last seen.",
        whole(counts.expiring),
    );
    gauge(
        "lock_backend_seconds",
        "How long the store took for a page of names.",
        seconds(seen.map(|seen| seen.latency)),
    );
    gauge("lock_sweep_seconds", "How long a look at all names took.", seconds(seen.map(|seen| seen.took)));
    gauge(
        "lock_sweep_complete",
        "Whether the last look took in all names.",
        f64::from(u8::from(state.complete())),
    );
    gauge("lock_console_streams", "Event streams that are open.", whole(streams as u64));
    gauge(
        "lock_console_requests_waiting",
        "Claims of requests to this server that wait.",
        whole(busy.waiting as u64),
    );
    gauge(
        "lock_console_uptime_seconds",
        "Since this server started.",
        console.started().elapsed().as_secs_f64(),
    );
    let mut counter =
        |name: &str, help: &str, value: u64| metric(&mut out, "counter", name, help, whole(value));
    counter("lock_acquired_total", "Acquisitions that were seen to begin.", total.acquires);
    counter("lock_waited_total", "Waits that were seen to begin.", total.waits);
    counter("lock_lost_total", "Holds whose lease was seen to run out.", total.losses);
    counter("lock_forced_total", "Holds that were broken here or seen to be broken.", total.broken);
    out
}

#[expect(clippy::cast_precision_loss, reason = "what is counted here stays far below 2^53")]
fn whole(count: u64) -> f64 {
    count as f64
}

fn metric(out: &mut String, kind: &str, name: &str, help: &str, value: f64) {
    let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
}
