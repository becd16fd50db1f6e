//! One server process: started, paused, resumed, crashed, restarted, and killed on drop.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fmt,
    fs::{self, File},
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tempfile::TempDir;

use super::nursery;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Ports are found by binding and letting go; somebody else may take one meanwhile. So many are tried.
const PORTS: usize = 5;

/// How to run a server.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// The program: found on the path, or a path itself.
    pub program: &'static str,
    /// The Debian package it comes in, for messages.
    pub package: &'static str,
    /// Its arguments, given a port and a folder of its own. It must stay in the foreground and listen on loopback.
    pub arguments: fn(port: u16, folder: &Path) -> Vec<String>,
    /// Whether it answers on this address.
    pub answers: fn(SocketAddr) -> bool,
}

/// Why a server did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// Its program is not there.
    NotInstalled {
        /// The program.
        program: String,
        /// The package to install.
        package: &'static str,
    },
    /// It ended at once.
    Exited {
        /// The program.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of its log.
        log: String,
    },
    /// It runs, but does not answer.
    NotReady {
        /// The program.
        program: String,
        /// The end of its log.
        log: String,
    },
    /// The operating system refused.
    System(io::Error),
}

/// A running server. Dropping it kills the process and removes its folder.
#[derive(Debug)]
pub struct Server {
    recipe: Recipe,
    more: Vec<String>,
    variables: Variables,
    port: u16,
    folder: TempDir,
    child: Child,
}

/// Makes a server's folder ready for a port; what comes of that are more arguments.
pub(super) type Prepare<'a> = dyn Fn(u16, &Path) -> Result<Vec<String>, StartError> + 'a;

/// Names and values in a server's environment, beside what it inherits.
pub(super) type Variables = Vec<(String, OsString)>;

impl Server {
    /// Starts a server and waits until it answers.
    ///
    /// # Errors
    /// [`StartError`], with the end of the server's own log where there is one.
    pub fn start(recipe: Recipe) -> Result<Self, StartError> {
        Self::start_with(recipe, || Ok(Vec::new()))
    }

    /// Starts a server with more arguments than its recipe has, and waits until it answers. They are asked for anew
    /// for each port that is tried, so that they may name a [`free_port`] too.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_with(
        recipe: Recipe,
        more: impl Fn() -> io::Result<Vec<String>>,
    ) -> Result<Self, StartError> {
        Self::start_among(recipe, &Vec::new(), more)
    }

    /// As [`start_with`](Self::start_with), with these variables in its environment.
    pub(super) fn start_among(
        recipe: Recipe,
        variables: &Variables,
        more: impl Fn() -> io::Result<Vec<String>>,
    ) -> Result<Self, StartError> {
        try_ports(|port| Self::start_on(recipe, &|_, _| Ok(more()?), variables.clone(), port))
    }

    /// As [`start`](Self::start), in a folder that `prepare` has made ready for this port.
    pub(super) fn start_prepared(
        recipe: Recipe,
        prepare: impl Fn(u16, &Path) -> Result<(), StartError>,
    ) -> Result<Self, StartError> {
        let prepare = |port, folder: &Path| prepare(port, folder).map(|()| Vec::new());
        try_ports(|port| Self::start_on(recipe, &prepare, Vec::new(), port))
    }

    /// Starts a server on this port, whose folder is made ready first: for one that reads its settings from a file.
    /// What comes of that are more arguments.
    pub(super) fn start_on(
        recipe: Recipe,
        prepare: &Prepare<'_>,
        variables: Variables,
        port: u16,
    ) -> Result<Self, StartError> {
        if !is_installed(recipe.program) {
            return Err(StartError::NotInstalled {
                program: recipe.program.to_owned(),
                package: recipe.package,
            });
        }
        let folder = TempDir::with_prefix("leasehold-server-")?;
        let more = prepare(port, folder.path())?;
        let child = run(&recipe, &more, &variables, port, folder.path())?;
        let mut server = Self { recipe, more, variables, port, folder, child };
        server.wait_ready()?;
        Ok(server)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it answers now.
    pub fn answers(&self) -> bool {
        (self.recipe.answers)(self.address())
    }

    /// Stops it where it stands (SIGSTOP), all of its threads: connections stay open and nothing answers.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn pause(&self) -> io::Result<()> {
        self.signal(Signal::STOP)?;
        let ended = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(process_id(self.child.id())?), ended)?;
        Ok(())
    }

    /// Lets it go on (SIGCONT).
    ///
    /// # Errors
    /// If the process is gone.
    pub fn resume(&self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    /// Kills it (SIGKILL), also when it is paused, and waits until it is gone. Its folder stays.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn crash(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    /// Starts it again after a crash: same port, same folder. Kills it first if it still runs.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn restart(&mut self) -> Result<(), StartError> {
        self.crash()?;
        self.child = run(&self.recipe, &self.more, &self.variables, self.port, self.folder.path())?;
        self.wait_ready()
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        signal_process(self.child.id(), signal)
    }

    #[expect(clippy::disallowed_methods, reason = "a server is started before there is a runtime to wait on")]
    fn wait_ready(&mut self) -> Result<(), StartError> {
        let end = Instant::now() + PATIENCE;
        while !self.answers() {
            let program = self.recipe.program.to_owned();
            if let Some(status) = self.child.try_wait()? {
                return Err(StartError::Exited { program, status, log: self.log() });
            }
            if Instant::now() > end {
                return Err(StartError::NotReady { program, log: self.log() });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// The last lines the server wrote.
    pub(super) fn log(&self) -> String {
        let log = fs::read_to_string(log_file(self.folder.path())).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have crashed already; then there is nothing to kill, and waiting returns at once.
        drop(self.crash());
    }
}

/// Only ever one process: a child's id is positive and names no group.
pub(super) fn signal_process(pid: u32, signal: Signal) -> io::Result<()> {
    Ok(kill_process(process_id(pid)?, signal)?)
}

fn process_id(pid: u32) -> io::Result<Pid> {
    let pid = i32::try_from(pid).ok().filter(|pid| *pid > 1).and_then(Pid::from_raw);
    pid.ok_or_else(|| io::Error::other("the server has no process id"))
}

/// Starts a server on one port after the other, for as long as it ends at once.
fn try_ports(start: impl Fn(u16) -> Result<Server, StartError>) -> Result<Server, StartError> {
    let mut last = None;
    for _ in 0..PORTS {
        match start(free_port()?) {
            Err(error @ StartError::Exited { .. }) => last = Some(error),
            started => return started,
        }
    }
    Err(last.unwrap_or_else(|| StartError::System(io::Error::other("no port was tried"))))
}

fn run(
    recipe: &Recipe,
    more: &[String],
    variables: &Variables,
    port: u16,
    folder: &Path,
) -> Result<Child, StartError> {
    let log = File::options().create(true).append(true).open(log_file(folder))?;
    let mut command: Command = nursery::mortal(recipe.program);
    command.args((recipe.arguments)(port, folder)).args(more).current_dir(folder);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    Ok(nursery::spawn(command)?)
}

fn log_file(folder: &Path) -> std::path::PathBuf {
    folder.join("server.log")
}

/// A port of the loopback interface that nobody uses now, and that this process was not given before: servers that
/// start side by side, or are down for a moment, do not take each other's.
///
/// # Errors
/// If the operating system has none left.
pub fn free_port() -> io::Result<u16> {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    for _ in 0..1000 {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        if GIVEN.lock().unwrap_or_else(PoisonError::into_inner).insert(port) {
            return Ok(port);
        }
    }
    Err(io::Error::other("this process was given nearly every free port; run fewer servers in it"))
}

/// Looked for by hand, because a program started through another is missed only by that one.
pub(super) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInstalled { program, package } => {
                write!(
                    f,
                    "{program} is not installed; install the package {package}, or run `cargo xtask test`"
                )
            }
            Self::Exited { program, status, log } => {
                write!(f, "{program} ended at once ({status}); its log:\n{log}")
            }
            Self::NotReady { program, log } => write!(f, "{program} did not answer in time; its log:\n{log}"),
            Self::System(error) => write!(f, "the server could not be started: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}
