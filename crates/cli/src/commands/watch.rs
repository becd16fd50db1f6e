//! `watch`: what happens to locks, as it happens.
//!
//! It looks every so often; what comes and goes between two looks is not seen. On a terminal, and anywhere else, it is
//! a line for each thing that happened: a table that redraws itself is what the page is for.

use std::time::Duration;

use jiff::Timestamp;
use leasehold::{Client, Who, time::Clock};
use leasehold_console::{
    view::time,
    watch::{Change, End, Watcher, What, told},
};
use tokio::signal::unix::{SignalKind, signal};

use super::close;
use crate::{
    args::{Output, Talk, duration},
    config::Settings,
    exit::{Exit, Failure},
    print, text, view,
};

/// Tell what happens to locks, as it happens
///
/// First what is held and who waits now, then a line for each change, until it is interrupted. It looks every so often:
/// what comes and goes between two looks is not seen.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// Only names that begin with this
    #[arg(value_name = "PREFIX", default_value = "", hide_default_value = true)]
    beginning: String,

    /// How often to look
    #[arg(long, value_name = "DUR", value_parser = duration, default_value = "1s")]
    every: Duration,
}

const AFTER: &str = "\
Examples:
  leasehold watch order:
  leasehold watch -o json | jq 'select(.what == \"ended\" and .how == \"expired\")'";

/// Less than this is no rest.
const LEAST: Duration = Duration::from_millis(50);

/// Watches until somebody wants us to stop.
pub(crate) async fn run(args: Args, settings: &Settings, talk: Talk) -> Result<Exit, Failure> {
    let arm = |kind| signal(kind).map_err(|error| Failure::internal("cannot listen for signals", error));
    let (mut terminate, mut interrupt) = (arm(SignalKind::terminate())?, arm(SignalKind::interrupt())?);
    let client = settings.connect().await?;
    let watched = tokio::select! {
        biased;
        _ = terminate.recv() => Ok(Exit::Success),
        _ = interrupt.recv() => Ok(Exit::Success),
        failure = watch(&args, &client, talk.output) => failure.map(|()| Exit::Success),
    };
    close(&client).await;
    watched
}

/// Ends only with a failure that stays one; a reader that went away is one without a word.
async fn watch(args: &Args, client: &Client, output: Output) -> Result<(), Failure> {
    let (mut watcher, mut seq, clock) = (Watcher::new(client.clone(), &args.beginning), 0, Clock::boot());
    let (mut first, mut cut_off) = (true, false);
    loop {
        let mut changes = match watcher.look().await.map_err(Failure::from) {
            Ok(changes) => changes,
            Err(failure) if first || failure.exit.is_hopeless() => return Err(failure),
            Err(failure) => {
                if !std::mem::replace(&mut cut_off, true) {
                    print::warn(&format!("cannot look, and goes on trying: {failure}"));
                }
                clock.pause(args.every.max(LEAST)).await;
                continue;
            }
        };
        if std::mem::take(&mut cut_off) {
            print::warn("looks again; what came and went meanwhile was not seen");
        }
        if std::mem::take(&mut first) {
            changes = watcher.seen().map(|seen| seen.standing()).unwrap_or_default();
        }
        let (now, mut out) = (Timestamp::now(), String::new());
        for change in &changes {
            seq += 1;
            match output {
                Output::Json => out.push_str(&told(change, seq, now).to_string()),
                Output::Table => out.push_str(&line(change, now)),
            }
            out.push('\n');
        }
        match output {
            Output::Json => print::json(&out)?,
            Output::Table => print::data(&out)?,
        }
        clock.pause(args.every.max(LEAST)).await;
    }
}

/// `08:40:00  ended     order:42  backup 4711@web-3, released after 3s`
fn line(change: &Change, now: Timestamp) -> String {
    let (what, who, more) = match &change.what {
        What::Acquired(holder) => {
            let label = holder.label.as_ref().map(|label| format!(" {label:?}")).unwrap_or_default();
            let left = view::brief(holder.remaining);
            ("acquired", Some(&holder.who), format!("{label}, fence {}, lease ends in {left}", holder.fence))
        }
        What::Ended(holder, end) => {
            let held = view::brief(holder.held_for);
            let how = match end {
                End::Released => format!(", released after {held}"),
                End::Expired => format!(", lost after {held}: its lease ran out"),
                End::Unknown => format!(", over after {held}"),
                End::Broken(broken) => format!(", broken after {held} by {}: {}", broken.by, broken.why),
            };
            ("ended", Some(&holder.who), how)
        }
        What::Waiting(waiter) => ("waiting", Some(&waiter.who), String::new()),
        What::Left(waiter) => ("left", Some(&waiter.who), format!(" after {}", view::brief(waiter.waited))),
        What::Changed => {
            ("changed", None, change.lock.as_ref().map(|lock| lock.kind.to_string()).unwrap_or_default())
        }
    };
    let person = |who: &std::sync::Arc<Who>| format!("{} {}@{}", who.program, who.pid, who.host);
    let who = who.map(person).unwrap_or_default();
    // What others wrote is made harmless before it is laid out.
    text::clean(&format!("{}  {what:<9} {}  {who}{more}", time(now), change.name)).into_owned()
}
