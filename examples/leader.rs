//! One process leads, the others follow; when the leader ends, is killed or cannot renew its lease, another one leads.
//!
//! ```sh
//! LEASEHOLD_STORE=redis://127.0.0.1 cargo run -p leasehold-examples --bin leader      # in two terminals
//! ```
//!
//! What a leader does ends with its lead: the work is dropped before another one can have begun. What it has sent on its way
//! by then cannot be called back, so it passes its fence along, and who receives it refuses a smaller one.

use std::{error::Error, process, time::Duration};

use leasehold::{Client, Election, ErrorKind, FromEnv};
use tokio::time::sleep;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let locks = Client::from_env().await?;
    let election = locks.election("scheduler").ttl("5s"); // so soon another one leads after a crash
    let me = format!("process {}", process::id());
    tokio::select! {
        ended = stand(&election, &me) => ended?,
        () = follow(&election, &me) => {}
        pressed = tokio::signal::ctrl_c() => pressed?,
    }
    locks.shutdown("5s").await?; // resigns, so that nobody waits for the lease to end
    println!("{me}: ends");
    Ok(())
}

/// Campaigns and leads; once more when the lead was lost.
async fn stand(election: &Election, me: &str) -> Result<(), leasehold::Error> {
    loop {
        let led = election
            .lead(me, async |leadership| {
                println!("{me}: leads with fence {}", leadership.fence());
                work().await
            })
            .await;
        match led {
            Err(error) if error.kind() == ErrorKind::Lost => println!("{me}: leads no more: {error}"),
            ended => return ended,
        }
    }
}

/// What only the leader does.
async fn work() -> Result<(), leasehold::Error> {
    loop {
        sleep(Duration::from_secs(1)).await;
    }
}

/// What everybody knows: who leads, and what the leader says of itself, such as its address.
async fn follow(election: &Election, me: &str) {
    let mut leaders = election.observe();
    loop {
        match leaders.next().await {
            Ok(Some(leader)) => println!("{me}: sees {} lead with fence {}", leader.text(), leader.fence),
            Ok(None) => println!("{me}: sees nobody lead"),
            Err(error) => {
                println!("{me}: cannot see who leads: {error}");
                sleep(Duration::from_secs(1)).await;
            }
        }
    }
}
