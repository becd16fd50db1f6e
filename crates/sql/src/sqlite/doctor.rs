//! The examination of a store in a file: where it is, who may touch it, whether it is sound and has room to grow.
//!
//! Most of what could be wrong is refused when the store is opened, and then there is nothing to examine. What is left
//! changes later, or is a choice that its owner may make. It changes nothing, and keeps nobody from writing.

use std::{path::Path, sync::Arc};

use leasehold_core::{Result, backend::Finding};
use rusqlite::Connection;

use super::{
    connection::{Lane, Patience},
    error::Tried,
    filesystem::Place,
};

/// A larger file is not read through: it would take longer than anybody wants to wait.
const READABLE: u64 = 256 << 20;

/// With less room than this, in bytes, locks may soon fail; with less than the second they are about to.
const LITTLE_ROOM: u64 = 100 << 20;
const NO_ROOM: u64 = 4 << 20;

/// Looks at the file and its surroundings.
pub(super) async fn examine(
    lane: &Arc<Lane>,
    patience: Patience,
    place: &Arc<Place>,
) -> Result<Vec<Finding>> {
    let place = place.clone();
    let examine = move |connection: &_| {
        place.check()?;
        let mut findings = vec![journal(connection)?, soundness(connection, &place)?];
        findings.extend(surroundings::examine(place.file()));
        Ok(findings)
    };
    lane.patiently(patience, examine).await
}

fn journal(connection: &Connection) -> Tried<Finding> {
    const TOPIC: &str = "journal";
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if mode == "wal" {
        return Ok(Finding::good(TOPIC, "the database writes ahead to a log (journal_mode wal)"));
    }
    let what = format!("the database does not write ahead to a log (journal_mode {mode})");
    Ok(Finding::danger(TOPIC, what)
        .because("readers and writers shut each other out, and locks wait for the disk")
        .remedy("find what changed journal_mode; whoever opens the store next changes it back"))
}

fn soundness(connection: &Connection, place: &Place) -> Tried<Finding> {
    const TOPIC: &str = "integrity";
    let size = std::fs::metadata(place.file()).map_or(0, |file| file.len());
    if size > READABLE {
        let what = format!("the file was not read through: it has {} MB", size >> 20);
        let note = Finding::note(TOPIC, what).because("damage would show only where it is met");
        return Ok(note.remedy("check it while nobody is in a hurry").command("PRAGMA quick_check"));
    }
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict == "ok" {
        return Ok(Finding::good(TOPIC, "the file is sound"));
    }
    Ok(Finding::danger(TOPIC, format!("the file is damaged: {verdict}"))
        .because("locks may be forgotten or never end")
        .remedy("stop everything that uses it, move it away and begin a new one"))
}

fn room(free: u64) -> Finding {
    const TOPIC: &str = "disk-space";
    let what = format!("{} MB are free where the file is", free >> 20);
    let why = "on a full disk no lock can be taken; those held can still be released";
    match free {
        ..NO_ROOM => Finding::danger(TOPIC, what).because(why).remedy("free some space"),
        NO_ROOM..LITTLE_ROOM => Finding::warning(TOPIC, what).because(why).remedy("free some space"),
        _ => Finding::good(TOPIC, what),
    }
}

/// What the rights of the file and its folder let others do.
fn rights(file: &Path, file_mode: u32, folder_mode: u32) -> Finding {
    const TOPIC: &str = "file-rights";
    const STICKY: u32 = 0o1000;
    let path = file.display();
    if file_mode & 0o022 != 0 {
        return Finding::warning(
            TOPIC,
            format!("others may write to the file (mode {:o})", file_mode & 0o777),
        )
        .because("whoever can write to it can take any lock away")
        .remedy("unless a group of users is meant to share it, keep it to yourself")
        .command(format!("chmod 600 {path}"));
    }
    if folder_mode & 0o022 != 0 && folder_mode & STICKY == 0 {
        let folder = file.parent().unwrap_or(file).display();
        return Finding::warning(
            TOPIC,
            format!("others may replace files in its folder (mode {:o})", folder_mode & 0o777),
        )
        .because("whoever replaces the file has all its locks, and its users lock in two files at once")
        .remedy("keep the folder to yourself")
        .command(format!("chmod go-w {folder}"));
    }
    if file_mode & 0o044 != 0 {
        return Finding::note(TOPIC, format!("others may read the file (mode {:o})", file_mode & 0o777))
            .because("they see which locks there are and who holds them")
            .remedy("keep it to yourself if that should not be")
            .command(format!("chmod 600 {path}"));
    }
    Finding::good(TOPIC, "nobody else may touch the file")
}

#[cfg(unix)]
mod surroundings {
    use std::{fs, os::unix::fs::PermissionsExt, path::Path};

    use leasehold_core::backend::Finding;

    /// What the system says about the file; what it does not say is passed over.
    pub(super) fn examine(file: &Path) -> Vec<Finding> {
        let folder = file.parent().unwrap_or(Path::new("/"));
        let modes = fs::metadata(file).and_then(|file| Ok((file, fs::metadata(folder)?)));
        let rights = modes
            .map(|(own, folder)| super::rights(file, own.permissions().mode(), folder.permissions().mode()));
        let room = rustix::fs::statvfs(folder)
            .map(|system| super::room(system.f_bavail.saturating_mul(system.f_frsize)));
        system(folder).into_iter().chain(rights).chain(room).collect()
    }

    /// Network file systems are refused before it comes to this.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn system(folder: &Path) -> Option<Finding> {
        const TOPIC: &str = "file-system";
        const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];
        let kind = u32::try_from(rustix::fs::statfs(folder).ok()?.f_type).ok()?;
        if !IN_MEMORY.contains(&kind) {
            return Some(Finding::good(TOPIC, "the file is on a disk of this machine"));
        }
        let note =
            Finding::note(TOPIC, "the file is in memory (tmpfs), and gone after a restart of the machine");
        Some(
            note.because("locks end with the machine anyway, but fences begin anew: a resource that remembers them refuses \
                 the new ones")
                .remedy("put the file on a disk if a resource checks fences"),
        )
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn system(_folder: &Path) -> Option<Finding> {
        None
    }
}

#[cfg(not(unix))]
mod surroundings {
    use std::path::Path;

    use leasehold_core::backend::Finding;

    pub(super) fn examine(_file: &Path) -> Vec<Finding> {
        let note = Finding::note(
            "not-checked",
            "rights, room and kind of the file system are not checked on this system",
        );
        vec![note]
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::backend::Severity;

    use super::*;

    #[test]
    fn room_is_judged_by_what_is_left() {
        for (free, expected) in [
            (0, Severity::Danger),
            (NO_ROOM - 1, Severity::Danger),
            (NO_ROOM, Severity::Warning),
            (LITTLE_ROOM - 1, Severity::Warning),
            (LITTLE_ROOM, Severity::Good),
            (u64::MAX, Severity::Good),
        ] {
            assert_eq!(room(free).severity, expected, "{free}");
        }
    }

    #[test]
    fn rights_of_others_are_told() {
        for (file, folder, expected) in [
            (0o600, 0o700, Severity::Good),
            (0o600, 0o755, Severity::Good),
            (0o600, 0o1777, Severity::Good),
            (0o600, 0o777, Severity::Warning),
            (0o644, 0o755, Severity::Note),
            (0o664, 0o700, Severity::Warning),
            (0o666, 0o700, Severity::Warning),
        ] {
            let finding = rights(Path::new("/x/locks.db"), file, folder);
            assert_eq!(finding.severity, expected, "{file:o} in {folder:o}: {finding:?}");
        }
    }
}
