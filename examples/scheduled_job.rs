//! A job on a schedule, the same program on every machine: each slot runs once, on one of them.
//!
//! ```sh
//! LEASEHOLD_STORE=sqlite:jobs.db cargo run -p leasehold-examples --bin scheduled_job      # in three terminals
//! ```
//!
//! Kill one: the others go on. A slot that was being run dies with its process, is shown so by `leasehold job show report`,
//! and is not run again. Across machines, name a server in `LEASEHOLD_STORE`; nothing else changes.

use std::{error::Error, io, process};

use leasehold::{Client, FromEnv, Run, run_all, scheduled};

/// Every second, so that there is something to see; a report would be `cron = "0 2 * * *", zone = "Europe/Berlin"`.
#[scheduled(cron = "* * * * * *", name = "report", at_most = "10s")]
async fn report(run: &Run) -> Result<(), io::Error> {
    // Whatever the work writes, it passes the fence along: that of a later run is greater.
    println!("slot {} with fence {} in process {}", run.slot(), run.fence(), process::id());
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let locks = Client::from_env().await?;
    leasehold::install(locks.clone())?;
    println!("process {} is ready", process::id());

    let work = async { Ok::<_, Box<dyn Error>>(run_all([report()]).await?) };
    let stop = async {
        tokio::signal::ctrl_c().await?;
        Ok(locks.shutdown("5s").await?) // ends the work too
    };
    let ((), farewell) = tokio::try_join!(work, stop)?;
    println!("process {} ends; cut off: {:?}", process::id(), farewell.interrupted);
    Ok(())
}
