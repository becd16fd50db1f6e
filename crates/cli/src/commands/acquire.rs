//! `acquire`: a lock that spans several commands of a script. Prints a ticket that renews and releases it.
//!
//! Nothing renews the lock but `renew`; a script that dies leaves it to the end of its lease. Where a command can
//! be named, `run` is better.

use leasehold::{Client, ErrorKind, Ticket};

use super::close;
use crate::{
    args::Asking,
    config::Settings,
    exit::{Exit, Failure},
    print::{self, Volume},
};

/// Take a lock that outlives this command, and print its ticket
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The lock's name
    name: String,

    #[command(flatten)]
    asking: Asking,
}

/// Takes the lock and prints the ticket.
pub(crate) async fn run(args: Args, settings: &Settings, volume: Volume) -> Result<Exit, Failure> {
    let Args { name, asking } = args;
    let client = settings.connect().await?;
    let mut lock = asking.lock(&client, &name);
    if let Some(wait) = asking.patience() {
        lock = lock.wait(wait);
    }
    let ticket = lock.ticket().await;
    let ended = match ticket {
        Ok(ticket) => deliver(&client, &ticket).await,
        Err(error) if error.kind() == ErrorKind::Busy => {
            let holders = error.busy().map(ToString::to_string).unwrap_or_default();
            print::note(volume, Volume::Normal, &format!("{name:?} is busy: {holders}"));
            Ok(Exit::Busy(Exit::BUSY))
        }
        Err(error) => Err(error.into()),
    };
    close(&client).await;
    ended
}

/// Prints the ticket. One that nobody got is given back: nobody else could before the end of its lease.
async fn deliver(client: &Client, ticket: &Ticket) -> Result<Exit, Failure> {
    let Err(failure) = print::delivered(&format!("{ticket}\n")) else { return Ok(Exit::Success) };
    let then = match client.release_ticket(ticket).await {
        Ok(()) => "the lock is released".to_owned(),
        Err(error) => format!("the lock ends with its lease, as releasing failed: {error}"),
    };
    Err(Failure::new(failure.exit, format!("{}; {then}", failure.message)))
}
