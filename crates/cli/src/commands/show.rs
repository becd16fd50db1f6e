//! `show`: everything known of one name.

use std::fmt::Write as _;

use jiff::Timestamp;
use leasehold::backend::LockState;

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
    let state = client.inspect(&args.name).await;
    close(&client).await;
    let state = state?;
    match talk.output {
        Output::Json => {
            let view = match &state {
                Some(state) => View::of(state, client.info(), Timestamp::now()),
                None => View::free(&args.name, client.info()),
            };
            let view = serde_json::to_string(&view);
            print::data(&(view.map_err(|error| Failure::internal("cannot write JSON", error))? + "\n"))?;
        }
        Output::Table => print::data(&describe(&args.name, state.as_ref()))?,
    }
    Ok(Exit::Success)
}

fn describe(name: &str, state: Option<&LockState>) -> String {
    let name = text::clean(name);
    let Some(state) = state else { return format!("{name} is free\n") };
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
    }
    for waiter in &state.waiters {
        let label = waiter.label.as_ref().map(|label| format!(" {label:?}")).unwrap_or_default();
        let waited = view::brief(waiter.waited);
        lines.push(format!("waiting {}{label} for {waited}", waiter.who));
        lines.push(format!("        {}, id {}", view::mode(waiter.mode), waiter.id));
    }
    let mut out = String::new();
    for line in lines {
        let _ = writeln!(out, "{}", text::clean(&line));
    }
    out
}
