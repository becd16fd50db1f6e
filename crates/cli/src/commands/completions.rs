//! `completions`: what a shell needs to complete our command lines.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::{
    args::Cli,
    exit::{Exit, Failure},
    print,
};

/// Print the completions for a shell
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: &Args) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "leasehold", &mut script);
    print::data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Success)
}
