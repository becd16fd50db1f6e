//! Other libraries: each is a folder of `bench/peers` with a `peer.toml`, so that adding one is adding a folder.
//!
//! One that cannot be had is named on the page with the reason; it is never left out in silence.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde::Deserialize;

use super::{Contender, Running, Waits};
use crate::args::Args;

/// Where Go puts itself if nobody says otherwise; it is seldom on the path.
const ELSEWHERE: &str = "/usr/local/go/bin";

/// What a `peer.toml` says. `{out}` in a command is where things are built, `{peer}` its own folder.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipe {
    name: String,
    language: String,
    waits: Waits,
    /// The store it is for: `redis` unless said.
    #[serde(default = "redis")]
    store: String,
    /// Programs that building and running take.
    needs: Vec<String>,
    /// Commands to build it, in its folder.
    build: Vec<Vec<String>>,
    /// The command to run it.
    run: Vec<String>,
    /// The file that is there once it is built.
    built: String,
}

fn redis() -> String {
    "redis".to_owned()
}

/// Those that are there, and those that are not with the reason.
type Found = (Vec<Contender>, Vec<(String, String)>);

pub(super) fn find(args: &Args) -> Result<Found, String> {
    let (mut there, mut missing) = (Vec::new(), Vec::new());
    let out = absolute(&args.out)?;
    for folder in folders(&args.peers)? {
        let recipe = Recipe::read(&folder)?;
        let name = recipe.name.clone();
        match recipe.prepare(&folder, &out, args.build) {
            Ok(contender) => there.push(contender),
            Err(why) => missing.push((name, why)),
        }
    }
    Ok((there, missing))
}

fn folders(peers: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(peers).map_err(|error| format!("cannot read {}: {error}", peers.display()))?;
    let mut folders: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.retain(|folder| folder.join("peer.toml").is_file());
    folders.sort();
    folders.into_iter().map(|folder| absolute(&folder)).collect()
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}

impl Recipe {
    fn read(folder: &Path) -> Result<Self, String> {
        let file = folder.join("peer.toml");
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        toml::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))
    }

    fn prepare(self, folder: &Path, out: &Path, build: bool) -> Result<Contender, String> {
        if let Some(need) = self.needs.iter().find(|need| !is_there(need)) {
            return Err(format!("{need} is not installed"));
        }
        let place = |text: &str| {
            text.replace("{out}", &out.to_string_lossy()).replace("{peer}", &folder.to_string_lossy())
        };
        if build {
            crate::say(&format!("==> building {} ({})", self.name, self.language));
            for command in &self.build {
                run(folder, &command.iter().map(|word| place(word)).collect::<Vec<_>>())?;
            }
        }
        if !Path::new(&place(&self.built)).exists() {
            return Err("it is not built; `cargo xtask bench` without --quick builds it".to_owned());
        }
        let (program, before) = self.run.split_first().ok_or("its peer.toml says no command to run")?;
        let mut contender = Contender {
            name: self.name,
            about: self.language.clone(),
            waits: self.waits,
            store: self.store,
            program: place(program).into(),
            before: before.iter().map(|word| place(word)).collect(),
            after: Vec::new(),
            is_ours: false,
        };
        let version = Running::version(&contender)?;
        contender.about = format!("{} {version}", self.language);
        Ok(contender)
    }
}

fn run(folder: &Path, command: &[String]) -> Result<(), String> {
    let (program, arguments) = command.split_first().ok_or("an empty command")?;
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("PATH", path())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start {program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let error =
        said.lines().find(|line| line.to_lowercase().contains("error")).or_else(|| said.lines().last());
    Err(format!("`{program}` ended with {}: {}", output.status, error.unwrap_or("nothing was said").trim()))
}

fn path() -> std::ffi::OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":");
    path.push(ELSEWHERE);
    path
}

fn is_there(program: &str) -> bool {
    std::env::split_paths(&path()).any(|folder| folder.join(program).is_file())
}
