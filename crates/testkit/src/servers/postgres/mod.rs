//! PostgreSQL, alone or behind a pooler. Real processes; see [`servers`](super).
//!
//! They trust everybody on loopback and do not wait for the disk: a crash of the process loses nothing all the same.

mod pooler;

use std::{
    fs,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    ops::Deref,
    path::{Path, PathBuf},
    sync::OnceLock,
    time::Duration,
};

use rustix::process::Signal;

pub use self::pooler::Pooler;
use super::{Recipe, Server, StartError, humble, process::signal_process};

const PACKAGE: &str = "postgresql";

/// How long it may take to say who it is.
const ANSWER: Duration = Duration::from_millis(500);

/// The only user who needs a password; whoever wants one creates it.
const GUARDED: &str = "guarded";

/// One PostgreSQL. Its superuser is `postgres`, who needs no password; a user `guarded` would need one.
#[derive(Debug)]
pub struct Postgres(Server);

impl Postgres {
    /// Starts a PostgreSQL.
    ///
    /// # Errors
    /// [`StartError`], with the end of the server's own log where there is one.
    pub fn start() -> Result<Self, StartError> {
        let program = program()?;
        let recipe = Recipe { program: humble::program(program), package: PACKAGE, arguments, answers };
        Server::start_prepared(recipe, |_, folder| prepare(Path::new(program), folder)).map(Self)
    }

    /// The URL of a database of its superuser.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@{}/{database}", self.address())
    }

    /// Stops all of it where it stands, those who serve connections too.
    ///
    /// # Errors
    /// If the processes are gone.
    pub fn pause(&self) -> io::Result<()> {
        self.0.pause()?;
        self.signal_servants(Signal::STOP)
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// If the processes are gone.
    pub fn resume(&self) -> io::Result<()> {
        self.signal_servants(Signal::CONT)?;
        self.0.resume()
    }

    /// Kills it and starts it again on the same port, with what it had committed.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn restart(&mut self) -> Result<(), StartError> {
        // Those who served connections notice a moment later that the server is gone; until then it cannot start.
        let mut last = self.0.restart();
        for _ in 0..50 {
            match last {
                Err(StartError::Exited { .. }) => last = self.0.restart(),
                last => return last,
            }
        }
        last
    }

    /// Kills it. Its folder stays, for [`restart`](Self::restart).
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn crash(&mut self) -> io::Result<()> {
        self.0.crash()
    }

    fn signal_servants(&self, signal: Signal) -> io::Result<()> {
        let pid = self.pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
            // One that has ended since is no trouble.
            let _ = signal_process(child, signal);
        }
        Ok(())
    }
}

impl Deref for Postgres {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0
    }
}

/// Debian keeps each version in a folder of its own; the newest is taken.
fn program() -> Result<&'static str, StartError> {
    static PROGRAM: OnceLock<&'static str> = OnceLock::new();
    if let Some(program) = PROGRAM.get() {
        return Ok(program);
    }
    let found = humble::find("postgres", PACKAGE, &versions())?;
    Ok(PROGRAM.get_or_init(|| humble::forever(&found)))
}

fn versions() -> Vec<PathBuf> {
    let entries = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<_> = entries.map(|entry| entry.path()).collect();
    let number = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    versions.sort_by_key(|path| std::cmp::Reverse(number(path)));
    versions.into_iter().map(|version| version.join("bin")).collect()
}

fn prepare(program: &Path, folder: &Path) -> Result<(), StartError> {
    humble::give(folder)?;
    let initdb = program.with_file_name("initdb");
    let data = folder.join("data").display().to_string();
    let words = ["-D", &data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"];
    humble::run(&initdb, &words, folder)?;
    // The first line that fits counts.
    let rules = folder.join("data/pg_hba.conf");
    let trusting = fs::read_to_string(&rules)?;
    Ok(fs::write(rules, format!("host all {GUARDED} 127.0.0.1/32 scram-sha-256\n{trusting}"))?)
}

fn arguments(port: u16, folder: &Path) -> Vec<String> {
    let own = [
        "-D",
        &folder.join("data").display().to_string(),
        "-p",
        &port.to_string(),
        "-c",
        "listen_addresses=127.0.0.1",
        "-c",
        &format!("unix_socket_directories={}", folder.display()),
        "-c",
        "fsync=off",
        "-c",
        "full_page_writes=off",
        "-c",
        "max_connections=300",
        "-c",
        "shared_preload_libraries=pg_stat_statements",
    ];
    let own = own.map(str::to_owned).to_vec();
    humble::arguments(program().unwrap_or("postgres"), own)
}

/// Whether it lets its superuser in: while it starts up it answers, but not that.
fn answers(address: SocketAddr) -> bool {
    says_welcome(address, b"user\0postgres\0database\0postgres\0\0").unwrap_or(false)
}

/// Whether a session with these parameters would be let in.
fn says_welcome(address: SocketAddr, parameters: &[u8]) -> io::Result<bool> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER)?;
    stream.set_read_timeout(Some(ANSWER))?;
    let length = u32::try_from(8 + parameters.len()).unwrap_or(u32::MAX);
    let mut message = length.to_be_bytes().to_vec();
    message.extend(196_608_u32.to_be_bytes());
    message.extend(parameters);
    stream.write_all(&message)?;
    let mut kind = [0];
    stream.read_exact(&mut kind)?;
    Ok(kind == *b"R")
}
