//! Running commands: said first, then done, and an error if they fail.

use std::process::Command;

/// What went wrong, in a sentence.
pub(crate) type Outcome = Result<(), String>;

/// Runs cargo with these arguments.
pub(crate) fn cargo(title: &str, arguments: &[&str]) -> Outcome {
    run(title, Command::new(env!("CARGO")).args(arguments))
}

/// Runs cargo with these arguments and a variable set.
pub(crate) fn cargo_with(title: &str, variable: (&str, &str), arguments: &[&str]) -> Outcome {
    run(title, Command::new(env!("CARGO")).args(arguments).env(variable.0, variable.1))
}

/// Runs a command.
pub(crate) fn run(title: &str, command: &mut Command) -> Outcome {
    say(&format!("==> {title}"));
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{title}: {} ended with {status}", command.get_program().display())),
        Err(error) => Err(format!("{title}: cannot start {}: {error}", command.get_program().display())),
    }
}

/// Talks to whoever runs this.
#[expect(clippy::print_stderr, reason = "this is the one place where chores talk")]
pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}
