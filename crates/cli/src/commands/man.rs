//! `man`: the manual page, made from the command line itself.

use clap::CommandFactory;

use crate::{
    args::Cli,
    exit::{Exit, Failure},
    print,
};

/// Prints the manual page of the program and of each command.
pub(crate) fn run() -> Result<Exit, Failure> {
    let mut page = Vec::new();
    let command = Cli::command();
    let rendered = clap_mangen::Man::new(command).render(&mut page);
    rendered.map_err(|error| Failure::internal("cannot make the manual page", error))?;
    print::data(&String::from_utf8_lossy(&page))?;
    Ok(Exit::Success)
}
