//! Running commands: said first, then done, and an error if they fail.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

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

/// The folder that cargo builds into: the chores' own program is two floors down in it.
pub(crate) fn build_folder() -> Option<PathBuf> {
    let chores = std::env::current_exe().ok()?;
    chores.ancestors().nth(2).map(Path::to_owned)
}

/// A build of programs, each a package and its name there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Build {
    /// As the tests are built: most of it is there after them.
    AsTests,
    /// As users get it.
    Release,
}

/// Builds programs in one go. Says where the first of them is: `cargo run` would build it again, for itself alone, with
/// other features.
pub(crate) fn build(title: &str, how: Build, programs: &[(&str, &str)]) -> Result<PathBuf, String> {
    let (folder, mut arguments) = match how {
        Build::AsTests => ("debug", vec!["build", "--workspace", "--all-features"]),
        Build::Release => ("release", vec!["build", "--release"]),
    };
    for (package, program) in programs {
        if matches!(how, Build::Release) {
            arguments.extend(["--package", package]);
        }
        arguments.extend(["--bin", program]);
    }
    cargo(title, &arguments)?;
    let first = programs.first().map(|(_, program)| *program).unwrap_or_default();
    let built = build_folder().map(|target| target.join(folder).join(first));
    built.filter(|program| program.is_file()).ok_or_else(|| format!("{first} is not where cargo builds it"))
}

/// Talks to whoever runs this.
#[expect(clippy::print_stderr, reason = "this is the one place where chores talk")]
pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}
