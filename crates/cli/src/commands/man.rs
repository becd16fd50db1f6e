//! `man`: the manual page, made from the command line itself.

use clap::{Command, CommandFactory};

use crate::{
    args::Cli,
    exit::{Exit, Failure},
    print,
};

/// Print a manual page
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The command it is about [default: all of them, in short]
    about: Option<String>,
}

/// Prints the manual page of the program, or of one of its commands.
pub(crate) fn run(args: &Args) -> Result<Exit, Failure> {
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(wanted(args)?).render(&mut page);
    rendered.map_err(|error| Failure::internal("cannot make the manual page", error))?;
    print::data(&String::from_utf8_lossy(&page))?;
    Ok(Exit::Success)
}

fn wanted(args: &Args) -> Result<Command, Failure> {
    let mut program = Cli::command();
    let Some(name) = &args.about else { return Ok(program) };
    program.build();
    let command = program.find_subcommand(name);
    let command = command.ok_or_else(|| Failure::usage(format!("there is no command {name:?}")))?;
    Ok(command.clone())
}
