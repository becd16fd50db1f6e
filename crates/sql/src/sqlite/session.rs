//! Sessions: how a process killed without warning is known to be gone at once.
//!
//! Each open store that asks for locks has a file in a folder beside the database, named after a random id, and an
//! exclusive `flock` on it. The kernel drops that lock with the last descriptor of the file, so whoever can get a
//! shared one knows that the session is over. POSIX record locks would not do: any close of the file by the same
//! process drops them, and they do not pass to another process with the descriptor.
//!
//! Death has to be proved, and the file without its lock is the proof. A file that is missing proves nothing: somebody
//! may have cleaned up while its session lives. Nor does a copy put in its place, so each file says which inode it is.
//! In both cases the session's locks end with their leases, as on stores that have no sessions.
//!
//! A copy of the descriptor in another process keeps the session alive: that is what the command line's dead-man
//! holds until the child is gone.
//!
//! Ids are never used twice, so a session found dead stays dead. Its file can be removed by anybody once no record
//! mentions it; before, the file is how its other locks are known to be free.

use std::{cell::RefCell, collections::HashMap};

use leasehold_core::{
    ClientId, Result,
    backend::record::{Moment, Surroundings},
};

#[cfg(not(unix))]
pub(super) use elsewhere::{Folder, Session};
#[cfg(unix)]
pub(super) use unix::{Folder, Session};

/// How many waiters outside the fair line a record lists. Everybody who looks reads all of it, so with hundreds of
/// processes waiting for one name a long list would cost more than the lock.
const CROWD: usize = 16;

/// Asks sessions whether they live, each at most once, and remembers who did not answer.
#[derive(Debug)]
pub(super) struct RollCall<'f> {
    folder: &'f Folder,
    own: Option<ClientId>,
    lives: RefCell<HashMap<ClientId, bool>>,
}

impl<'f> RollCall<'f> {
    pub(super) fn new(folder: &'f Folder, own: Option<ClientId>) -> Self {
        Self { folder, own, lives: RefCell::default() }
    }

    /// Shows `work` the surroundings at this moment.
    pub(super) fn around<T>(&self, now: Moment, work: impl FnOnce(&Surroundings<'_>) -> T) -> T {
        let alive = |session| self.lives(session);
        work(&Surroundings { now, session: self.own, crowd: CROWD, alive: &alive })
    }

    /// Those who did not answer.
    pub(super) fn dead(self) -> Vec<ClientId> {
        self.lives.into_inner().into_iter().filter(|(_, lives)| !lives).map(|(session, _)| session).collect()
    }

    fn lives(&self, session: ClientId) -> bool {
        *self.lives.borrow_mut().entry(session).or_insert_with(|| self.folder.lives(session))
    }
}

#[cfg(unix)]
mod unix {
    use std::{io, os::fd::OwnedFd, path::Path, sync::Arc};

    use leasehold_core::{ClientId, Error, ErrorKind, Operation};
    use rustix::{
        fs::{self, AtFlags, FlockOperation, Mode, OFlags, Stat},
        io::Errno,
    };

    use super::Result;
    use crate::sqlite::error::from_io;

    /// The folder of all sessions of one database.
    #[derive(Debug)]
    pub(in crate::sqlite) struct Folder {
        folder: OwnedFd,
        owner: Stat,
    }

    impl Folder {
        /// Opens the folder, making it if need be.
        ///
        /// `database` is the file whose owner the folder must have, besides us and root: root may come first to a
        /// user's database, and gives the folder to that user.
        pub(in crate::sqlite) fn open(path: &Path, database: &Path) -> Result<Self> {
            let unusable = |error: Errno| {
                from_io(error.into(), format!("cannot use the folder of sessions {}", path.display()))
            };
            let owner = fs::lstat(database).map_err(unusable)?;
            let made = match fs::mkdir(path, Mode::RWXU) {
                Err(error) if error != Errno::EXIST => return Err(unusable(error)),
                made => made.is_ok(),
            };
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let folder = fs::open(path, flags, Mode::empty()).map_err(|error| match error {
                Errno::LOOP | Errno::NOTDIR => denied(path, "is not a folder; remove it"),
                error => unusable(error),
            })?;
            if made {
                give_to(&folder, &owner);
            }
            let found = fs::fstat(&folder).map_err(unusable)?;
            let us = rustix::process::geteuid().as_raw();
            if ![us, 0, owner.st_uid].contains(&found.st_uid) {
                return Err(denied(path, "belongs to another user"));
            }
            Ok(Self { folder, owner })
        }

        /// Whether the session is not proved to be over. If we cannot find out, it lives: its lease will end it.
        pub(in crate::sqlite) fn lives(&self, session: ClientId) -> bool {
            !matches!(self.seize(session), Ok(Some(file)) if is_original(&file))
        }

        /// Removes the file of a session that is over and that no record mentions.
        pub(in crate::sqlite) fn bury(&self, session: ClientId) {
            // The lock is kept meanwhile: whoever has just made the file and wants its lock must not get it now.
            if let Ok(Some(_file)) = self.seize(session) {
                // If it is gone already, somebody else was quicker; if it cannot be removed, it does no harm.
                let _ = fs::unlinkat(&self.folder, session.to_string(), AtFlags::empty());
            }
        }

        /// The sessions whose files have no lock, among no more than `most` files.
        pub(in crate::sqlite) fn unlocked(&self, most: usize) -> io::Result<Vec<ClientId>> {
            let mut sessions = self.sessions(most)?;
            sessions.retain(|session| matches!(self.seize(*session), Ok(Some(_))));
            Ok(sessions)
        }

        /// Whether any session in the folder lives.
        pub(in crate::sqlite) fn is_alive(&self) -> io::Result<bool> {
            let locked = |session| match self.seize(session) {
                Ok(file) => file.is_none(),
                Err(error) => error != Errno::NOENT,
            };
            Ok(self.sessions(usize::MAX)?.into_iter().any(locked))
        }

        /// The session's file with a lock of ours on it; `None` if the session has the lock.
        fn seize(&self, session: ClientId) -> Result<Option<OwnedFd>, Errno> {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let file = fs::openat(&self.folder, session.to_string(), flags, Mode::empty())?;
            let locked = fs::flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
            Ok(locked.then_some(file))
        }

        fn sessions(&self, most: usize) -> io::Result<Vec<ClientId>> {
            let mut sessions = Vec::new();
            for entry in fs::Dir::read_from(&self.folder)?.take(most) {
                sessions
                    .extend(entry?.file_name().to_str().ok().and_then(|name| name.parse::<ClientId>().ok()));
            }
            Ok(sessions)
        }
    }

    /// What a session's file says: a copy of it is another file and says the same.
    fn mark(file: &OwnedFd) -> Result<String, Errno> {
        Ok(fs::fstat(file)?.st_ino.to_string())
    }

    fn is_original(file: &OwnedFd) -> bool {
        let mut text = [0; 32];
        match (mark(file), rustix::io::pread(file, &mut text, 0)) {
            (Ok(mark), Ok(length)) => text[..length] == *mark.as_bytes(),
            _ => false,
        }
    }

    fn denied(path: &Path, why: &str) -> Error {
        let message = format!("the folder of sessions {} {why}", path.display());
        Error::new(ErrorKind::Denied, Operation::Connect, message)
    }

    /// What root makes beside a user's database belongs to that user, or the user could not use it.
    fn give_to(file: &OwnedFd, owner: &Stat) {
        let us = rustix::process::geteuid();
        if us.is_root() && owner.st_uid != us.as_raw() {
            let (user, group) = (fs::Uid::from_raw(owner.st_uid), fs::Gid::from_raw(owner.st_gid));
            // Not to be able to is no reason to stop: root's own locks work.
            let _ = fs::fchown(file, Some(user), Some(group));
        }
    }

    /// A session of ours, for as long as this value and all copies of its descriptor live.
    #[derive(Debug)]
    pub(in crate::sqlite) struct Session {
        id: ClientId,
        file: OwnedFd,
        /// Whether the file says what it is. On a full disk it could not.
        marked: bool,
        missed: bool,
    }

    impl Session {
        /// Begins a session.
        pub(in crate::sqlite) fn begin(folder: &Arc<Folder>) -> Result<Self> {
            let failed = |error: Errno| match error {
                Errno::NOENT => from_io(error.into(), "the folder of sessions is gone; open the store again"),
                error => from_io(error.into(), "cannot make a session file"),
            };
            for _ in 0..16 {
                let id = ClientId::random();
                let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let mode = Mode::RUSR | Mode::WUSR;
                let file = fs::openat(&folder.folder, id.to_string(), flags, mode).map_err(failed)?;
                let locked = fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
                if locked && fs::fstat(&file).map_err(failed)?.st_nlink == 1 {
                    give_to(&file, &folder.owner);
                    let mut session = Self { id, file, marked: false, missed: false };
                    session.mark();
                    return Ok(session);
                }
                // Before we had the lock a sweep took the file for a dead session's. Nobody knows the id yet.
                folder.bury(id);
            }
            let message = "session files vanish as soon as they are made; leave their folder alone";
            Err(Error::new(ErrorKind::Unavailable, Operation::Acquire, message))
        }

        pub(in crate::sqlite) fn id(&self) -> ClientId {
            self.id
        }

        /// Another descriptor of the same session, closed in programs we start.
        pub(in crate::sqlite) fn copy(&self) -> Option<OwnedFd> {
            self.file.try_clone().ok()
        }

        /// Writes the mark if that could not be done before: until it is there the file proves nothing, and should
        /// we be killed our leases have to run out.
        fn mark(&mut self) {
            let Ok(text) = mark(&self.file) else { return };
            self.marked = rustix::io::pwrite(&self.file, text.as_bytes(), 0) == Ok(text.len());
        }

        /// Makes up for a mark that could not be written, and says so, once, if somebody removed the file.
        ///
        /// It is not made anew: copies of the descriptor would not keep the new one's lock, and who looks at it would
        /// take the session for dead while they live.
        pub(in crate::sqlite) fn look_after(&mut self) {
            if !self.marked {
                self.mark();
            }
            if !self.missed && fs::fstat(&self.file).is_ok_and(|file| file.st_nlink == 0) {
                self.missed = true;
                tracing::warn!(
                    session = %self.id,
                    "the session's file was removed; should this process be killed, its locks stay held until \
                     their leases end"
                );
            }
        }
    }
}

/// Where there is no `flock` there are no sessions: a dead holder's lease has to run out.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "as on unix, where they do something")]
mod elsewhere {
    use std::{io, path::Path, sync::Arc};

    use leasehold_core::ClientId;

    use super::Result;

    #[derive(Debug)]
    pub(in crate::sqlite) struct Folder;

    impl Folder {
        pub(in crate::sqlite) fn open(_path: &Path, _database: &Path) -> Result<Self> {
            Ok(Self)
        }

        pub(in crate::sqlite) fn lives(&self, _session: ClientId) -> bool {
            true
        }

        pub(in crate::sqlite) fn bury(&self, _session: ClientId) {}

        pub(in crate::sqlite) fn unlocked(&self, _most: usize) -> io::Result<Vec<ClientId>> {
            Ok(Vec::new())
        }

        pub(in crate::sqlite) fn is_alive(&self) -> io::Result<bool> {
            Ok(false)
        }
    }

    #[derive(Debug)]
    pub(in crate::sqlite) struct Session(ClientId);

    impl Session {
        pub(in crate::sqlite) fn begin(_folder: &Arc<Folder>) -> Result<Self> {
            Ok(Self(ClientId::random()))
        }

        pub(in crate::sqlite) fn id(&self) -> ClientId {
            self.0
        }

        pub(in crate::sqlite) fn look_after(&mut self) {}
    }
}
