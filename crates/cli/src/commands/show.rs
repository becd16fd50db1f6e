//! `show`: everything known of one name.

use std::{fmt::Write as _, time::Duration};

use jiff::Timestamp;
use leasehold::{Client, Past, backend::LockState};

use super::close;
use crate::{
    args::{Output, Talk},
    config::Settings,
    exit::{Exit, Failure},
    print, text,
    view::{self, View},
};

/// Show everything known of one name
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The name
    name: String,
}

/// Shows the name, in use or not.
pub(crate) async fn run(args: Args, settings: &Settings, talk: Talk) -> Result<Exit, Failure> {
    let client = settings.connect().await?;
    let looked = look(&client, &args.name).await;
    close(&client).await;
    let (state, past) = looked?;
    match talk.output {
        Output::Json => {
            let view = match &state {
                Some(state) => View::of(state, client.info(), Timestamp::now()),
                None => View::free(&args.name, client.info()),
            };
            let view = serde_json::to_string(&view.with_history(&past));
            print::json(&(view.map_err(|error| Failure::internal("cannot write JSON", error))? + "\n"))?;
        }
        Output::Table => print::data(&describe(&args.name, state.as_ref(), &past))?,
    }
    Ok(Exit::Success)
}

/// What is known of the name, and its last holds where the store can keep them.
async fn look(client: &Client, name: &str) -> Result<(Option<LockState>, Vec<Past>), Failure> {
    let state = client.inspect(name).await?;
    let past = if client.info().capabilities.cells { client.history(name).await? } else { Vec::new() };
    Ok((state, past))
}

fn describe(name: &str, state: Option<&LockState>, past: &[Past]) -> String {
    let mut lines = match state {
        Some(state) => present(name, state),
        None => vec![format!("{name} is free")],
    };
    lines.extend(past.iter().map(before));
    let mut out = String::new();
    for line in lines {
        let _ = writeln!(out, "{}", text::clean(&line));
    }
    out
}

fn present(name: &str, state: &LockState) -> Vec<String> {
    let mut lines = vec![format!("{name} is {}, newest fence {}", state.kind, state.fence)];
    if state.holders.is_empty() {
        lines.push("held by nobody".to_owned());
    }
    for holder in &state.holders {
        let mode = view::mode(holder.mode);
        lines.push(format!("held by {holder}"));
        lines.push(format!(
            "        {mode}, fence {}, times {}, id {}",
            holder.fence, holder.count, holder.id
        ));
        lines.extend(holder.location.as_ref().map(|location| format!("        asked for at {location}")));
    }
    for waiter in &state.waiters {
        let label = waiter.label.as_ref().map(|label| format!(" {label:?}")).unwrap_or_default();
        let waited = view::brief(waiter.waited);
        lines.push(format!("waiting {}{label} for {waited}", waiter.who));
        lines.push(format!("        {}, id {}", view::mode(waiter.mode), waiter.id));
        lines.extend(waiter.location.as_ref().map(|location| format!("        asked for at {location}")));
    }
    lines
}

/// `before  backup (pid 4711 on web-3, user deploy) for 30s after a wait of 0s, released, fence 7`
fn before(past: &Past) -> String {
    let brief = |millis| view::brief(Duration::from_millis(millis));
    let mut line = format!("before  {}", past.who);
    if let Some(label) = &past.label {
        let _ = write!(line, " {label:?}");
    }
    let _ = write!(line, " for {} after a wait of {}, {}", brief(past.held), brief(past.waited), past.how);
    if let (Some(by), Some(why)) = (&past.by, &past.why) {
        let _ = write!(line, " by {by}: {why}");
    }
    let _ = write!(line, ", fence {}", past.fence);
    line
}
