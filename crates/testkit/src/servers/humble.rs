//! Servers that refuse to run as root: as somebody who owns nothing but the server's folder.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
    process::Command,
};

use super::StartError;

/// `nobody`, on every Linux we know.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The words before a program's own that make it run as nobody, if we are root. `setpriv` has to be told anew that it
/// dies with us: a change of user forgets that.
pub(super) fn words() -> Vec<String> {
    let words = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "--pdeathsig", "KILL", "--"];
    if is_root() { words.map(str::to_owned).to_vec() } else { Vec::new() }
}

/// What to start: `setpriv` for root, else the program itself.
pub(super) fn program(program: &'static str) -> &'static str {
    if is_root() { "setpriv" } else { program }
}

/// A server's arguments, after its own name if it is started by another.
pub(super) fn arguments(program: &str, own: Vec<String>) -> Vec<String> {
    let mut all = words();
    if is_root() {
        all.push(program.to_owned());
    }
    all.extend(own);
    all
}

/// Lets whoever runs the server have this.
pub(super) fn give(path: &Path) -> io::Result<()> {
    if is_root() { std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)) } else { Ok(()) }
}

/// Runs a program to its end, as whoever runs the server.
pub(super) fn run<W: AsRef<OsStr>>(program: &Path, words: &[W], folder: &Path) -> Result<(), StartError> {
    let mut command = if is_root() { Command::new("setpriv") } else { Command::new(program) };
    if is_root() {
        command.args(self::words()).arg(program);
    }
    let output = command.args(words).current_dir(folder).output()?;
    if output.status.success() {
        return Ok(());
    }
    let log = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    Err(StartError::Exited { program: program.display().to_string(), status: output.status, log })
}

/// Where a program is, on the path or in one of these folders.
pub(super) fn find(
    program: &'static str,
    package: &'static str,
    folders: &[PathBuf],
) -> Result<PathBuf, StartError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let mut places = on_path.chain(folders.iter().cloned()).map(|folder| folder.join(program));
    let missing = || StartError::NotInstalled { program: program.to_owned(), package };
    places.find(|file| file.is_file()).ok_or_else(missing)
}

/// A path for as long as the process lives, as recipes want it. Only ever a few.
pub(super) fn forever(path: &Path) -> &'static str {
    Box::leak(path.display().to_string().into_boxed_str())
}
