//! MongoDB as it is run: alone, and as a replica set of three. Each server is a real process; see [`servers`](super).
//!
//! Every verb blocks until it is done; none needs a runtime. Waiting is for what the servers themselves say.
//!
//! Data is in memory where the system has room for it: a majority's write waits for two journals, one after the other, and
//! on a disk that others use that is most of what a test would wait for. A server that is killed finds it all again, as it
//! would on a disk; nothing here tests what a power failure does.

mod set;
mod wire;

use std::{
    io,
    net::SocketAddr,
    ops::{Deref, DerefMut},
    path::Path,
    sync::OnceLock,
    time::Duration,
};

pub use self::{
    set::ReplicaSet,
    wire::{Value, fields},
};
use rustix::fs::statvfs;
use tempfile::TempDir;

use super::{Recipe, Server, StartError};

/// How long a server that runs may take for any command.
const PATIENCE: Duration = Duration::from_secs(5);

/// The variable that names the program. `cargo xtask test` installs one and sets it.
pub const PROGRAM: &str = "LEASEHOLD_MONGOD";

/// Folders of this one are in memory.
const MEMORY: &str = "/dev/shm";

/// As many bytes must be free there: a set of three takes a fraction of it.
const ROOM: u64 = 2 << 30;

/// One MongoDB server.
#[derive(Debug)]
pub struct Mongodb {
    // Dropped in this order.
    server: Server,
    _data: TempDir,
}

impl Mongodb {
    /// The user that a guarded server is given, with all rights.
    pub const USER: &str = "holder";
    /// That user's password.
    pub const PASSWORD: &str = "right";

    /// Starts a server of its own.
    ///
    /// # Errors
    /// [`StartError`], with the end of the server's own log where there is one.
    pub fn start() -> Result<Self, StartError> {
        Self::start_with(&[])
    }

    /// Starts one that wants a user and a password, and knows [`USER`](Self::USER).
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_guarded() -> Result<Self, StartError> {
        let server = Self::start_with(&["--auth"])?;
        // The first user may be made by anybody on the same machine.
        let root = fields([("role", "root".into()), ("db", "admin".into())]);
        server.demand(&fields([
            ("createUser", Self::USER.into()),
            ("pwd", Self::PASSWORD.into()),
            ("roles", Value::List(vec![root])),
            ("$db", "admin".into()),
        ]))?;
        Ok(server)
    }

    pub(super) fn start_with(more: &[&str]) -> Result<Self, StartError> {
        let data = folder()?;
        let place = data.path().display().to_string();
        let more: Vec<String> =
            ["--dbpath", &place].iter().chain(more).copied().map(ToOwned::to_owned).collect();
        let server = Server::start_with(recipe(), || Ok(more.clone()))?;
        Ok(Self { server, _data: data })
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("mongodb://{}/?directConnection=true", self.address())
    }

    /// Sends one command, with its database in `$db`, and returns the answer, which may say that it failed.
    ///
    /// # Errors
    /// If the server does not answer in time.
    pub fn ask(&self, command: &Value) -> io::Result<Value> {
        wire::ask(self.address(), command, PATIENCE)
    }

    /// Sends one command that must succeed.
    ///
    /// # Errors
    /// If the server does not answer in time, or refuses.
    pub fn demand(&self, command: &Value) -> io::Result<Value> {
        let answer = self.ask(command)?;
        if answer.get("ok").and_then(Value::number) == Some(1) {
            return Ok(answer);
        }
        Err(io::Error::other(format!("{} refused {command:?}: {answer:?}", self.address())))
    }

    /// How often the server was sent the command of this name, such as `findAndModify`.
    ///
    /// # Errors
    /// If the server does not answer in time, or has no such count.
    pub fn count(&self, name: &str) -> io::Result<i64> {
        let status = self.demand(&fields([("serverStatus", 1.into()), ("$db", "admin".into())]))?;
        let count =
            status.get("metrics").and_then(|metrics| metrics.get("commands")).and_then(|all| all.get(name));
        let total = count.and_then(|count| count.get("total")).and_then(Value::number);
        total.ok_or_else(|| io::Error::other(format!("no count of {name}")))
    }

    fn hello(&self) -> io::Result<Value> {
        self.ask(&hello())
    }
}

impl Deref for Mongodb {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl DerefMut for Mongodb {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.server
    }
}

fn program() -> &'static str {
    static NAMED: OnceLock<String> = OnceLock::new();
    NAMED.get_or_init(|| std::env::var(PROGRAM).unwrap_or_else(|_| "mongod".to_owned()))
}

fn recipe() -> Recipe {
    Recipe { program: program(), package: "mongodb-org-server", arguments, answers }
}

/// A folder for data.
fn folder() -> io::Result<TempDir> {
    let prefix = "leasehold-mongodb-";
    let has_room = statvfs(MEMORY).is_ok_and(|memory| memory.f_bavail * memory.f_frsize >= ROOM);
    let in_memory = has_room.then(|| TempDir::with_prefix_in(prefix, MEMORY).ok()).flatten();
    in_memory.map_or_else(|| TempDir::with_prefix(prefix), Ok)
}

fn arguments(port: u16, folder: &Path) -> Vec<String> {
    let (port, folder) = (port.to_string(), folder.display().to_string());
    let varying = ["--port", &port, "--unixSocketPrefix", &folder];
    let fixed = ["--bind_ip", "127.0.0.1", "--quiet", "--wiredTigerCacheSizeGB", "0.25"];
    // A journal of megabytes, not of hundreds of them.
    let small = ["--wiredTigerEngineConfigString", "log=(prealloc=false,file_max=1MB)"];
    let silent = ["--setParameter", "diagnosticDataCollectionEnabled=false"];
    let all = varying.into_iter().chain(fixed).chain(small).chain(silent);
    all.map(ToOwned::to_owned).collect()
}

fn answers(address: SocketAddr) -> bool {
    wire::ask(address, &hello(), Duration::from_secs(1)).is_ok_and(|answer| answer.get("ok").is_some())
}

fn hello() -> Value {
    fields([("hello", 1.into()), ("$db", "admin".into())])
}
