//! One process of the workload: connects, locks, works, writes everything down; ends by itself, on SIGTERM, or with
//! whoever started it.

use std::process::ExitCode;

use clap::Parser as _;
use leasehold_reliability::worker::{self, Arguments};

fn main() -> ExitCode {
    worker::main(Arguments::parse(), |_, _| None)
}
