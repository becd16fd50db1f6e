//! Builds the Java program, once for what its sources are, with Maven: from what it has already if it can, from its
//! repository the first time.
//!
//! What is built is in `target/interop/<version>`, next to a note of what it was built from. Processes that want it at
//! the same time wait for each other.

use std::{
    fs::{self, File},
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use leasehold_testkit::servers::StartError;

use crate::config::Version;

/// What is run: no life cycle, so no plugins that are not needed.
const GOALS: &[&str] = &["compiler:compile", "jar:jar", "dependency:copy-dependencies"];

/// How Maven says that it cannot get something.
const UNREACHABLE: &[&str] =
    &["could not be resolved", "Could not transfer", "Cannot access", "No plugin found for prefix"];

/// The program's archive, built if it is not there or is of other sources.
pub(crate) fn jar(version: Version) -> Result<PathBuf, StartError> {
    let out = target().join("interop").join(version.profile());
    fs::create_dir_all(&out)?;
    let lock = File::create(out.join("lock"))?;
    lock.lock()?;
    let (jar, note) = (out.join("interop.jar"), out.join("built-from"));
    let sources = fingerprint(&project())?;
    let is_built = jar.is_file() && fs::read_to_string(&note).is_ok_and(|built| built == sources);
    if !is_built {
        build(version, &out)?;
        fs::write(note, sources)?;
    }
    Ok(jar)
}

/// Finds a program on the path.
pub(crate) fn installed(program: &str, package: &'static str) -> Result<(), StartError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    let missing = || StartError::NotInstalled { program: program.to_owned(), package };
    if found { Ok(()) } else { Err(missing()) }
}

fn build(version: Version, out: &Path) -> Result<(), StartError> {
    installed("mvn", "maven")?;
    installed("javac", "default-jdk-headless")?;
    // What an earlier version left behind must not be on the class path.
    let leftovers = fs::remove_dir_all(out.join("lib"));
    leftovers.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
    if maven(version, out, &["--offline"])?.status.success() {
        return Ok(());
    }
    let output = maven(version, out, &[])?;
    if output.status.success() { Ok(()) } else { Err(failure(&output)) }
}

fn maven(version: Version, out: &Path, options: &[&str]) -> io::Result<Output> {
    let profile = format!("-P{}", version.profile());
    let folder = format!("-Dinterop.out={}", out.display());
    Command::new("mvn")
        .args(["--quiet", "--batch-mode", "--file"])
        .arg(project().join("pom.xml"))
        .args(options)
        .args([profile, folder])
        .args(GOALS)
        .stdin(Stdio::null())
        .output()
}

fn failure(output: &Output) -> StartError {
    let log = String::from_utf8_lossy(&output.stdout).into_owned();
    if UNREACHABLE.iter().any(|words| log.contains(words)) {
        // As if it were not installed: a machine without a network may skip what needs it, where that is allowed.
        return StartError::NotInstalled {
            program: "Redisson".to_owned(),
            package: "maven and let it reach its repository once",
        };
    }
    StartError::Exited { program: "mvn".to_owned(), status: output.status, log }
}

/// Changes when the sources do.
fn fingerprint(project: &Path) -> io::Result<String> {
    let mut files = vec![project.join("pom.xml")];
    collect(&project.join("src"), &mut files)?;
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.strip_prefix(project).unwrap_or(&file).hash(&mut hasher);
        fs::read(&file)?.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../redisson")
}

/// Cargo's own folder for what is built.
fn target() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    workspace.join(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_said_to_be_missing() {
        let missing = installed("no-such-program", "none");
        assert!(matches!(missing, Err(StartError::NotInstalled { .. })), "{missing:?}");
    }

    #[test]
    fn other_sources_have_another_fingerprint() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("src")).unwrap();
        fs::write(folder.path().join("pom.xml"), "a").unwrap();
        let before = fingerprint(folder.path()).unwrap();
        assert_eq!(fingerprint(folder.path()).unwrap(), before);
        fs::write(folder.path().join("src/More.java"), "b").unwrap();
        assert_ne!(fingerprint(folder.path()).unwrap(), before);
    }
}
