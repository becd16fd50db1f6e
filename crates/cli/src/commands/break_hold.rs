//! `break`: takes a lock away from a holder that will not give it back.
//!
//! Breaking a lock does not stop the work done under it. So it names exactly one acquisition, by the id that `ls`
//! and `show` print: if the lock has changed hands since, nothing happens.

use std::io::{self, BufRead, IsTerminal};

use leasehold::{
    ClaimId, Client, Who,
    backend::{BreakOutcome, Broken, LockState},
};

use super::close;
use crate::{
    config::Settings,
    exit::{Exit, Failure},
    print::{self, Volume},
};

/// Take a lock away from its holder
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The lock's name
    name: String,

    /// The acquisition to break, as `ls` and `show` print it; any other is left alone
    #[arg(long)]
    id: String,

    /// Why: the holder is told, and it is kept
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// Shows who holds the lock, asks, and breaks exactly that hold.
pub(crate) async fn run(args: Args, settings: &Settings, volume: Volume) -> Result<Exit, Failure> {
    let id: ClaimId = args.id.parse()?;
    let can_ask = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !args.yes && !can_ask {
        return Err(Failure::usage(
            "there is no terminal to ask on; add --yes to break the lock without asking",
        ));
    }
    let client = settings.connect().await?;
    let outcome = decide(&args, id, &client, volume).await;
    close(&client).await;
    outcome
}

async fn decide(args: &Args, id: ClaimId, client: &Client, volume: Volume) -> Result<Exit, Failure> {
    let state = client.inspect(&args.name).await?;
    let holder = state.iter().flat_map(|state| &state.holders).find(|holder| holder.id == id);
    let Some(holder) = holder else { return Err(changed_hands(&args.name, state.as_ref())) };
    print::note(volume, Volume::Normal, &format!("{:?} is held by {holder}", args.name));
    if !args.yes && !confirmed()? {
        print::note(volume, Volume::Normal, "left alone");
        return Ok(Exit::Success);
    }
    let Who { user, host, .. } = client.who();
    let broken = Broken { by: format!("{user}@{host}").into(), why: args.reason.as_str().into() };
    let forced = client.break_hold_as(&args.name, id, broken).await?;
    match forced.outcome {
        BreakOutcome::Broken => {
            print::note(
                volume,
                Volume::Normal,
                "broken; the holder is told by its next renewal at the latest, its work may still run",
            );
            if let Some(error) = forced.unaudited {
                print::warn(&format!("the audit has no entry of it: {error}"));
            }
            Ok(Exit::Success)
        }
        BreakOutcome::NotHeld => Err(changed_hands(&args.name, client.inspect(&args.name).await?.as_ref())),
    }
}

fn changed_hands(name: &str, state: Option<&LockState>) -> Failure {
    let now = match state.map(|state| state.holders.as_slice()) {
        None | Some([]) => "nobody holds it now".to_owned(),
        Some([holder, ..]) => format!("now held by {holder}, id {}", holder.id),
    };
    Failure::new(Exit::Busy(Exit::BUSY), format!("{name:?} has changed hands, nothing was broken; {now}"))
}

/// Asks on the terminal; anything but yes is no.
fn confirmed() -> Result<bool, Failure> {
    print::ask("take the lock away? the work under it is not stopped by this. Type yes: ");
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| Failure::internal("cannot read the answer", error))?;
    Ok(answer.trim() == "yes")
}
