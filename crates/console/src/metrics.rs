//! What Prometheus reads: how it stands, and what happened since the server started.
//!
//! Names of locks are no labels: they are many, and often somebody's customers. What only a holder knows of itself (how long
//! it waited and held, its renewals, why it lost) is not here: a look at the store now and then does not see it. So no name
//! here is one that the library tells its recorder: one Prometheus may read both.

use std::{fmt::Write as _, time::Duration};

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use leasehold::backend::Mode;

use crate::{
    console::Console,
    live::{Counts, State as Known},
    times::{Op, Times},
    watch::Seen,
};

const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) async fn show(State(console): State<Console>) -> Response {
    ([(header::CONTENT_TYPE, FORMAT)], text(&console)).into_response()
}

fn text(console: &Console) -> String {
    let state = console.live().state();
    let mut out = Text::default();
    store(&mut out, &state, console.live().up().unwrap_or(false));
    asked(&mut out, console.store().times());
    if let Some(seen) = state.current() {
        names(&mut out, state.counts, seen);
    }
    happened(&mut out, &state);
    server(&mut out, console);
    out.0
}

/// The store, and how it answers.
fn store(out: &mut Text, state: &Known, up: bool) {
    let seen = state.seen.as_deref();
    out.gauge("lock_backend_up", "Whether the store answered the last look.", truth(up));
    let took = seconds(seen.map(|seen| seen.took));
    out.gauge("lock_sweep_seconds", "How long a look at all names took.", took);
    out.gauge("lock_sweep_complete", "Whether the last look took in all names.", truth(state.complete()));
    // Before the first look it has no age.
    if let Some(age) = seen.and_then(Seen::age) {
        let help = "How long ago the store last answered a look.";
        out.gauge("lock_sweep_age_seconds", help, age.as_secs_f64());
    }
    out.head("counter", "lock_sweeps_total", "Looks at all names, by whether the store answered.");
    out.row("lock_sweeps_total", "{outcome=\"seen\"}", whole(state.looks.seen));
    out.row("lock_sweeps_total", "{outcome=\"failed\"}", whole(state.looks.failed));
}

/// How long the store took for what was asked of it.
fn asked(out: &mut Text, times: &Times) {
    let name = "lock_backend_seconds";
    out.head("histogram", name, "How long the store took, by what was asked of it.");
    for (op, histogram) in Op::ALL.map(|op| (op.name(), times.of(op))) {
        let mut count = 0;
        for (end, at_most) in histogram.at_most() {
            let end = if end.is_finite() { end.to_string() } else { "+Inf".to_owned() };
            out.row("lock_backend_seconds_bucket", &format!("{{op=\"{op}\",le=\"{end}\"}}"), whole(at_most));
            count = at_most;
        }
        let labels = format!("{{op=\"{op}\"}}");
        out.row("lock_backend_seconds_sum", &labels, histogram.sum().as_secs_f64());
        out.row("lock_backend_seconds_count", &labels, whole(count));
    }
}

/// What is held and waited for. Told only while it is known: a number that stands still while the store is away looks like one
/// that is well.
fn names(out: &mut Text, counts: Counts, seen: &Seen) {
    out.gauge("lock_names", "Names in use, as last seen.", whole(counts.names));
    out.gauge("lock_held", "Names that somebody holds, as last seen.", whole(counts.held));
    out.head("gauge", "lock_holders", "Acquisitions that are held, as last seen.");
    for (kind, count) in by_kind(seen) {
        out.row("lock_holders", &format!("{{kind=\"{kind}\"}}"), whole(count));
    }
    out.gauge("lock_waiters", "Claims that wait, as last seen.", whole(counts.waiting));
    let help = "Holds with less than ten seconds of lease left, as last seen.";
    out.gauge("lock_expiring", help, whole(counts.expiring));
    let locks = || seen.locks.values();
    let longest_wait = locks().flat_map(|lock| lock.waiters.iter().map(|waiter| waiter.waited)).max();
    let longest_hold = locks().flat_map(|lock| lock.holders.iter().map(|holder| holder.held_for)).max();
    let help = "How long the one who waits longest has waited, as last seen.";
    out.gauge("lock_longest_wait_seconds", help, seconds(longest_wait));
    let help = "How long the one who holds longest has held, as last seen.";
    out.gauge("lock_longest_hold_seconds", help, seconds(longest_hold));
}

/// What was seen to happen since the start: what came and went between two looks was not.
fn happened(out: &mut Text, state: &Known) {
    let total = state.total;
    out.counter("lock_acquired_total", "Acquisitions that were seen to begin.", total.acquires);
    out.counter("lock_waited_total", "Waits that were seen to begin.", total.waits);
    out.counter("lock_expired_total", "Holds whose lease was seen to run out.", total.losses);
    out.counter("lock_forced_total", "Holds that were broken here or seen to be broken.", total.broken);
}

/// This server itself.
fn server(out: &mut Text, console: &Console) {
    let (busy, (streams, _)) = (console.store().stats(), console.streams());
    out.gauge("lock_console_streams", "Event streams that are open.", whole(streams as u64));
    let help = "Claims of requests to this server that wait.";
    out.gauge("lock_console_requests_waiting", help, whole(busy.waiting as u64));
    let help = "Requests that were refused because whoever sent them asked too often.";
    out.counter("lock_console_too_fast_total", help, console.rates().refused());
    let uptime = console.started().elapsed();
    out.gauge("lock_console_uptime_seconds", "Since this server started.", uptime.as_secs_f64());
}

/// How many hold in each of the ways there are.
fn by_kind(seen: &Seen) -> [(&'static str, u64); 3] {
    let mut kinds = [("exclusive", 0), ("shared", 0), ("permits", 0)];
    for holder in seen.locks.values().flat_map(|lock| &lock.holders) {
        let kind = match holder.mode {
            Mode::Shared => 1,
            Mode::Permits { .. } => 2,
            _ => 0,
        };
        kinds[kind].1 += 1;
    }
    kinds
}

/// Lines of the format.
#[derive(Default)]
struct Text(String);

impl Text {
    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head("gauge", name, help);
        self.row(name, "", value);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head("counter", name, help);
        self.row(name, "", whole(value));
    }

    fn head(&mut self, kind: &str, name: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn row(&mut self, name: &str, labels: &str, value: f64) {
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }
}

fn truth(so: bool) -> f64 {
    f64::from(u8::from(so))
}

fn seconds(duration: Option<Duration>) -> f64 {
    duration.unwrap_or_default().as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "what is counted here stays far below 2^53")]
fn whole(count: u64) -> f64 {
    count as f64
}
