//! The database file and its folder: made privately, and refused where they cannot be trusted.
//!
//! Whoever can replace the file can hand out its locks, so: a folder we make is ours alone (0700), a file we make too
//! (0600); a symbolic link as the last part of the path is refused, also for the files SQLite puts beside it; so is a
//! file of another user, a file with two names (SQLite keeps its log by name), and a network file system.
//!
//! A file that is moved away or replaced while in use is noticed at the next transaction. Between that check and the
//! commit it is not: no program can see that.

use std::{
    ffi::OsString,
    fs::{self, Metadata},
    io,
    path::{Path, PathBuf},
};

use leasehold_core::{Error, ErrorKind, Operation, Result};

use super::error::from_io;

/// A database file that passed all checks.
#[derive(Debug)]
pub(super) struct Place {
    file: PathBuf,
    identity: Identity,
}

impl Place {
    /// Checks the path, and makes the folder and an empty file where they are missing.
    pub(super) fn prepare(path: &Path) -> Result<Self> {
        let name = file_name(path)?;
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        create_folder(parent)
            .map_err(|error| from_io(error, format!("cannot make the folder {}", parent.display())))?;
        let folder = parent
            .canonicalize()
            .map_err(|error| from_io(error, format!("no folder {}", parent.display())))?;
        system::refuse_network(&folder)?;
        let file = folder.join(name);
        let metadata = existing_or_new(&file)?;
        system::refuse_foreign(&file, &metadata)?;
        for suffix in ["-wal", "-shm", "-journal"] {
            refuse_link(&beside(&file, suffix))?;
        }
        Ok(Self { file, identity: system::identity(&metadata) })
    }

    /// The file, by its full path.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// A file next to the database, named after it.
    pub(super) fn beside(&self, suffix: &str) -> PathBuf {
        beside(&self.file, suffix)
    }

    /// Refuses to go on if the path does not lead to the file we opened any more: others would be locking in
    /// another file than we.
    pub(super) fn check(&self) -> Result<()> {
        match fs::symlink_metadata(&self.file) {
            Ok(metadata) if system::identity(&metadata) == self.identity => Ok(()),
            _ => {
                let message =
                    format!("{} was moved or replaced while in use; open it again", self.file.display());
                Err(Error::new(ErrorKind::Internal, Operation::Inspect, message))
            }
        }
    }
}

/// What tells one file from another that has its path.
type Identity = (u64, u64);

fn file_name(path: &Path) -> Result<OsString> {
    let text = path.to_string_lossy();
    if text.is_empty() || text.starts_with(':') || text.starts_with("file:") {
        let message = format!("{text:?} is not the path of a file; locks that others can see need one");
        return Err(Error::config(Operation::Connect, message));
    }
    let name = path.file_name().filter(|_| !text.ends_with('/'));
    let message = || format!("{text:?} is a folder; add the name of a file");
    name.map(ToOwned::to_owned).ok_or_else(|| Error::config(Operation::Connect, message()))
}

/// Makes a folder and those above it, so that they are still there after a power cut.
fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_folder(parent)?;
    match system::make_folder(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => system::sync_folder(parent),
    }
}

fn existing_or_new(file: &Path) -> Result<Metadata> {
    let unusable = |error| from_io(error, format!("cannot use {}", file.display()));
    refuse_link(file)?;
    if let Err(error) = fs::symlink_metadata(file) {
        if error.kind() != io::ErrorKind::NotFound {
            return Err(unusable(error));
        }
        match system::make_file(file) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(unusable(error)),
            _ => system::sync_folder(file.parent().unwrap_or(Path::new("."))).map_err(unusable)?,
        }
    }
    let metadata = fs::symlink_metadata(file).map_err(unusable)?;
    if metadata.is_file() {
        return Ok(metadata);
    }
    Err(Error::config(Operation::Connect, format!("{} is not a regular file", file.display())))
}

fn refuse_link(file: &Path) -> Result<()> {
    match fs::symlink_metadata(file) {
        Ok(metadata) if metadata.is_symlink() => {
            let message = format!("{} is a symbolic link; give the path of the file itself", file.display());
            Err(Error::new(ErrorKind::Denied, Operation::Connect, message))
        }
        _ => Ok(()),
    }
}

fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(unix)]
mod system {
    use std::{
        fs::{self, DirBuilder, Metadata},
        io,
        os::unix::fs::{DirBuilderExt, MetadataExt},
        path::Path,
    };

    use leasehold_core::{Error, ErrorKind, Operation, Result};

    use super::{Identity, from_io};

    pub(super) fn identity(metadata: &Metadata) -> Identity {
        (metadata.dev(), metadata.ino())
    }

    pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(folder)
    }

    /// Made without being opened: to close a descriptor of the file would drop the locks that SQLite, in another
    /// thread of this process, may already have on it.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn make_file(file: &Path) -> io::Result<()> {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        Ok(mknodat(CWD, file, FileType::RegularFile, Mode::RUSR | Mode::WUSR, 0)?)
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(super) fn make_file(file: &Path) -> io::Result<()> {
        use std::os::unix::fs::OpenOptionsExt;
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map(drop)
    }

    pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
        fs::File::open(folder)?.sync_all()
    }

    /// Root may use anybody's file; everybody may use root's, as far as its rights go.
    pub(super) fn refuse_foreign(file: &Path, metadata: &Metadata) -> Result<()> {
        let us = rustix::process::geteuid().as_raw();
        let denied = |message| Err(Error::new(ErrorKind::Denied, Operation::Connect, message));
        if us != 0 && ![us, 0].contains(&metadata.uid()) {
            return denied(format!("{} belongs to another user (uid {})", file.display(), metadata.uid()));
        }
        let access = rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK;
        rustix::fs::accessat(rustix::fs::CWD, file, access, rustix::fs::AtFlags::EACCESS).map_err(
            |error| from_io(error.into(), format!("we have no right to write to {}", file.display())),
        )?;
        if metadata.nlink() > 1 {
            return denied(format!(
                "{} has more than one name (hard links); remove the others",
                file.display()
            ));
        }
        Ok(())
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn refuse_network(folder: &Path) -> Result<()> {
        use super::super::mounts;
        let unreadable =
            |error| from_io(error, "cannot tell which file system the database is on; mount /proc");
        let table = fs::read("/proc/self/mountinfo").map_err(unreadable)?;
        let table = String::from_utf8_lossy(&table);
        let device = fs::metadata(folder).map_err(unreadable)?.dev();
        let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
        let Some(kind) = mounts::shared_type(&table, folder, &device) else { return Ok(()) };
        let message = format!("{} is on a network file system ({kind}); use a local one", folder.display());
        Err(Error::new(ErrorKind::Unsupported, Operation::Connect, message))
    }

    /// There is no table to read; keeping off network file systems is up to the user.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    #[expect(clippy::unnecessary_wraps, reason = "as on Linux, where it can refuse")]
    pub(super) fn refuse_network(_folder: &Path) -> Result<()> {
        Ok(())
    }
}

/// Where there are no owners and modes, the folder's own rights must do.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "as on unix, where it can refuse")]
mod system {
    use std::{
        fs::{self, Metadata},
        io,
        path::Path,
    };

    use leasehold_core::Result;

    use super::Identity;

    pub(super) fn identity(_metadata: &Metadata) -> Identity {
        (0, 0)
    }

    pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
        fs::create_dir(folder)
    }

    pub(super) fn make_file(file: &Path) -> io::Result<()> {
        fs::OpenOptions::new().write(true).create_new(true).open(file).map(drop)
    }

    pub(super) fn sync_folder(_folder: &Path) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn refuse_foreign(_file: &Path, _metadata: &Metadata) -> Result<()> {
        Ok(())
    }

    pub(super) fn refuse_network(_folder: &Path) -> Result<()> {
        Ok(())
    }
}
