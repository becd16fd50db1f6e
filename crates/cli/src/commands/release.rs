//! `release`: gives a ticket's lock back.

use super::{close, read_ticket};
use crate::{
    config::Settings,
    exit::{Exit, Failure},
};

/// Give a ticket's lock back
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The ticket that `acquire` printed; `-` reads it from stdin
    ticket: String,
}

/// Releases the lock. One that was lost before is an error: the work was not protected to its end.
pub(crate) async fn run(args: Args, settings: &Settings) -> Result<Exit, Failure> {
    let ticket = read_ticket(&args.ticket)?;
    let client = settings.connect().await?;
    let released = client.release_ticket(&ticket).await;
    close(&client).await;
    released?;
    Ok(Exit::Success)
}
