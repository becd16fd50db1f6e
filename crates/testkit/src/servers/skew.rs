//! A wall clock that is wrong, for one program and what it starts: a small library that is preloaded into it moves the time
//! of day, and leaves the monotonic clocks alone.
//!
//! It is compiled here, so it takes a C compiler. Programs that ask the kernel without the C library are not deceived.

use std::{
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

use super::StartError;

/// A clock that can be set while the program runs.
#[derive(Debug)]
pub struct Skew {
    folder: TempDir,
}

impl Skew {
    /// Compiles the library. The clock is right until it is set.
    ///
    /// # Errors
    /// `NotInstalled` if there is no C compiler.
    pub fn compile() -> Result<Self, StartError> {
        let skew = Self { folder: TempDir::with_prefix("leasehold-clock-")? };
        skew.set(0)?;
        compile(skew.folder.path())?;
        Ok(skew)
    }

    /// Sets the clock so many milliseconds forward, or back.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn set(&self, milliseconds: i64) -> io::Result<()> {
        let path = self.folder.path().join("skew");
        let file = std::fs::File::options().create(true).write(true).truncate(false).open(path)?;
        // Always as many bytes, so that no reader sees half of it.
        file.write_all_at(format!("{milliseconds:+019}\n").as_bytes(), 0)
    }

    /// What a program must find in its environment.
    pub fn variables(&self) -> [(&'static str, PathBuf); 2] {
        let at = |name| self.folder.path().join(name);
        [("SKEW_FILE", at("skew")), ("LD_PRELOAD", at("clock.so"))]
    }
}

fn compile(folder: &Path) -> Result<(), StartError> {
    let source = folder.join("clock.c");
    std::fs::write(&source, include_str!("skew.c"))?;
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-shared", "-fPIC", "-o"]).arg(folder.join("clock.so")).arg(source);
    let status = compiler.stdin(Stdio::null()).status();
    let missing = |_| StartError::NotInstalled { program: "cc".to_owned(), package: "gcc" };
    if status.map_err(missing)?.success() {
        return Ok(());
    }
    Err(StartError::System(io::Error::other("the clock does not compile: see what the compiler says")))
}
