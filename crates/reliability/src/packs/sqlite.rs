//! SQLite: a file that all workers share. Where root allows, it is on a small file system of its own, which is full now
//! and then.

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use leasehold_testkit::servers::StartError;
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use super::Pack;
use crate::{clock::rest, dice::Dice};

const FULL: &str = "disk full";
/// Small: the store has to keep its log short by itself.
const SIZE: &str = "size=24m";

struct Sqlite {
    folder: TempDir,
    mounted: bool,
}

pub(super) fn start() -> Result<Box<dyn Pack>, StartError> {
    let folder = TempDir::with_prefix("leasehold-sqlite-")?;
    let mounted = quietly("mount", &["-t", "tmpfs", "-o", SIZE, "tmpfs"], folder.path());
    Ok(Box::new(Sqlite { folder, mounted }))
}

impl Pack for Sqlite {
    fn url(&self) -> String {
        format!("sqlite:{}", self.file("locks.db").display())
    }

    fn version(&self) -> String {
        if self.mounted { "bundled, on tmpfs" } else { "bundled, on disk" }.to_owned()
    }

    /// Without a file system of its own nothing is filled: it would be everybody's.
    fn faults(&self) -> &'static [&'static str] {
        if self.mounted { &[FULL] } else { &[] }
    }

    fn inflict(&mut self, _fault: &str, lease: Duration, dice: &mut Dice) -> io::Result<()> {
        let filler = self.file("filler");
        fill(&filler)?;
        rest(dice.between(lease / 4, lease * 2));
        std::fs::remove_file(&filler)
    }

    /// A name that nobody uses has no record, only a fence. Records that mention the killed end when somebody comes by.
    fn leftovers(&self, killed: &[String]) -> io::Result<Vec<String>> {
        let left = records(&self.file("locks.db")).map_err(io::Error::other)?;
        let lives = |record: &str| !killed.iter().any(|client| record.contains(client));
        Ok(left.into_iter().filter(|(_, record)| lives(record)).map(|(name, _)| name).collect())
    }
}

impl Sqlite {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        if self.mounted {
            quietly("umount", &[], self.folder.path());
        }
    }
}

/// Names of which more than a fence is kept, and what.
fn records(file: &Path) -> rusqlite::Result<Vec<(String, String)>> {
    let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut rows = database.prepare("SELECT name, record FROM leasehold_record WHERE record IS NOT NULL")?;
    rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Writes until there is no room for another byte.
fn fill(file: &Path) -> io::Result<()> {
    let mut filler = File::create(file)?;
    for block in [vec![0; 65536], vec![0; 512]] {
        while filler.write_all(&block).is_ok() {}
    }
    Ok(())
}

/// Whether a command about this folder succeeded; what it says is not shown.
fn quietly(program: &str, arguments: &[&str], folder: &Path) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).arg(folder).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_mentions_none_of_the_killed_is_a_leak() {
        let store = Sqlite { folder: tempfile::tempdir().unwrap(), mounted: false };
        let database = Connection::open(store.file("locks.db")).unwrap();
        let rows = "CREATE TABLE leasehold_record (name TEXT, fence INTEGER, record TEXT);
            INSERT INTO leasehold_record VALUES ('free', 1, NULL), ('dead', 2, 'by client-1'), ('left', 3, 'by client-2')";
        database.execute_batch(rows).unwrap();
        assert_eq!(store.leftovers(&["client-1".to_owned()]).unwrap(), ["left"]);
        assert_eq!(store.leftovers(&[]).unwrap().len(), 2);
    }
}
