//! `renew`: more time for a ticket's lock.

use std::time::Duration;

use super::{close, read_ticket};
use crate::{
    args::{Talk, duration},
    config::Settings,
    exit::{Exit, Failure},
    print::{self, Volume},
};

/// Give a ticket's lock a new lease
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The ticket that `acquire` printed; `-` reads it from stdin
    ticket: String,

    /// The lease, from now [default: as it was acquired with]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    ttl: Option<Duration>,
}

/// Renews the lease.
pub(crate) async fn run(args: Args, settings: &Settings, talk: Talk) -> Result<Exit, Failure> {
    let ticket = read_ticket(&args.ticket)?;
    let client = settings.connect().await?;
    let renewed = client.renew_ticket(&ticket, args.ttl.unwrap_or(ticket.ttl())).await;
    close(&client).await;
    let granted = humantime::format_duration(renewed?);
    print::note(
        talk.volume(),
        Volume::Verbose,
        &format!("{:?} is held for {granted} from now", ticket.name()),
    );
    Ok(Exit::Success)
}
