//! A worker that uses other libraries: the crates `rslock` and `redlock`, as their documentation shows them.
//!
//! It is outside of the workspace, so that nothing of ours depends on them, and is built where it is asked for.

mod redlock;
mod rslock;

use std::{process::ExitCode, time::Duration};

use clap::Parser as _;
use leasehold_reliability::{
    clock,
    worker::{self, Arguments, Kind, Rival},
};

fn main() -> ExitCode {
    worker::main(Arguments::parse(), rival)
}

fn rival(kind: Kind, arguments: &Arguments) -> Option<Box<dyn Rival>> {
    let servers = servers(&arguments.url);
    match kind {
        Kind::Rslock => Some(Box::new(rslock::Peer::new(servers))),
        Kind::Redlock => Some(Box::new(redlock::Peer::new(servers))),
        _ => None,
    }
}

/// One URL per server: ours names them all in one.
fn servers(url: &str) -> Vec<String> {
    let (_, hosts) = url.split_once("://").unwrap_or(("", url));
    hosts.split(',').map(|host| format!("redis://{host}/")).collect()
}

/// When a validity that was told just now is over. Both libraries count milliseconds.
fn deadline(validity: usize) -> u64 {
    let validity = Duration::from_millis(u64::try_from(validity).unwrap_or(u64::MAX));
    clock::now().saturating_add(u64::try_from(validity.as_nanos()).unwrap_or(u64::MAX))
}
