//! ZooKeeper as it is run: alone, and as an ensemble. Each server is a real process; see [`servers`](super).
//!
//! Every verb blocks until it is done, or until a minute has passed; none needs a runtime. Waiting is for what the
//! servers themselves say, never for a time.
//!
//! Ticks are short (200 ms), so that sessions may be short and a leader is missed soon; sessions may last from 400 ms to
//! five minutes.

mod ensemble;
mod words;

use std::{
    fs, io,
    net::SocketAddr,
    ops::{Deref, DerefMut},
    path::Path,
    time::{Duration, Instant},
};

pub use self::ensemble::Ensemble;
use super::{Recipe, Server, StartError, free_port};

/// Where the distribution puts what the server is made of.
const LIBRARIES: [&str; 2] = ["/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-simple.jar"];

/// The package that has it.
const PACKAGE: &str = "libzookeeper-java";

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often ports are tried: somebody else may take one meanwhile.
const PORTS: usize = 5;

/// One ZooKeeper.
#[derive(Debug)]
pub struct ZooKeeper(Server);

/// How a server is run, beside what all have in common.
#[derive(Clone, Debug, Default)]
#[must_use = "a setup does nothing until it is started"]
pub struct Setup {
    lines: Vec<String>,
    flags: Vec<String>,
}

impl Setup {
    /// As usual.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more line in its settings.
    pub fn with_line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// With one more flag of the Java machine, such as `-Dname=value`.
    pub fn with_flag(mut self, flag: impl Into<String>) -> Self {
        self.flags.push(flag.into());
        self
    }
}

impl ZooKeeper {
    /// Starts a ZooKeeper and waits until it serves.
    ///
    /// # Errors
    /// [`StartError`], with the end of the server's own log where there is one.
    pub fn start() -> Result<Self, StartError> {
        Self::start_as(&Setup::new())
    }

    /// Starts one with settings of its own.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_as(setup: &Setup) -> Result<Self, StartError> {
        let mut last = None;
        for _ in 0..PORTS {
            match Self::start_on(setup, 1, free_port()?) {
                Err(error @ StartError::Exited { .. }) => last = Some(error),
                started => return started.and_then(Self::serving),
            }
        }
        Err(last.unwrap_or_else(|| StartError::System(io::Error::other("no port was tried"))))
    }

    /// Starts one that may have to wait for others before it serves.
    fn start_on(setup: &Setup, number: usize, port: u16) -> Result<Self, StartError> {
        if let Some(missing) = LIBRARIES.iter().find(|library| !Path::new(library).is_file()) {
            return Err(StartError::NotInstalled { program: (*missing).to_owned(), package: PACKAGE });
        }
        let prepare = |port: u16, folder: &Path| Ok(prepare(setup, number, port, folder)?);
        Server::start_on(RECIPE, &prepare, Vec::new(), port).map(Self)
    }

    fn serving(self) -> Result<Self, StartError> {
        self.await_serving()?;
        Ok(self)
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("zookeeper://{}", self.address())
    }

    /// What it answers to a command of four letters.
    ///
    /// # Errors
    /// If it does not answer in time.
    pub fn word(&self, word: &str) -> io::Result<String> {
        words::ask(self.address(), word)
    }

    /// Its mode: `standalone`, `leader` or `follower`; `None` while it does not serve.
    pub fn mode(&self) -> Option<String> {
        words::mode(self.address())
    }

    /// One number of its `mntr`.
    ///
    /// # Errors
    /// If it does not answer in time, or has no such number.
    pub fn number(&self, name: &str) -> io::Result<f64> {
        let said = self.word("mntr")?;
        let found =
            said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t')?.trim().parse().ok());
        found.ok_or_else(|| io::Error::other(format!("mntr has no {name}")))
    }

    /// Waits until it serves.
    ///
    /// # Errors
    /// If it does not within a minute.
    pub fn await_serving(&self) -> io::Result<()> {
        until(|| self.mode().is_some())
            .map_err(|_| io::Error::other(format!("it does not serve:\n{}", self.log())))
    }

    /// Starts it again after a crash, and waits until it serves.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn come_back(&mut self) -> Result<(), StartError> {
        self.0.restart()?;
        Ok(self.await_serving()?)
    }
}

impl Deref for ZooKeeper {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0
    }
}

impl DerefMut for ZooKeeper {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.0
    }
}

const RECIPE: Recipe = Recipe { program: "java", package: "default-jre-headless", arguments, answers };

/// The settings file and what else depends on the setup comes with the preparation.
fn arguments(_port: u16, _folder: &Path) -> Vec<String> {
    ["-Xms32m", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        .map(str::to_owned)
        .to_vec()
}

fn answers(address: SocketAddr) -> bool {
    words::ask(address, "ruok").is_ok_and(|said| said == "imok")
}

/// Writes the settings, and says how to run the server with them.
fn prepare(setup: &Setup, number: usize, port: u16, folder: &Path) -> io::Result<Vec<String>> {
    let data = folder.join("data");
    fs::create_dir_all(&data)?;
    fs::write(data.join("myid"), number.to_string())?;
    let usual = [
        "tickTime=200".to_owned(),
        "initLimit=50".to_owned(),
        "syncLimit=10".to_owned(),
        format!("clientPort={port}"),
        "clientPortAddress=127.0.0.1".to_owned(),
        format!("dataDir={}", data.display()),
        "admin.enableServer=false".to_owned(),
        "4lw.commands.whitelist=*".to_owned(),
        "maxClientCnxns=0".to_owned(),
        "minSessionTimeout=400".to_owned(),
        "maxSessionTimeout=300000".to_owned(),
    ];
    let lines: Vec<&str> = usual.iter().chain(&setup.lines).map(String::as_str).collect();
    let settings = folder.join("zoo.cfg");
    fs::write(&settings, lines.join("\n"))?;
    let mut arguments = setup.flags.clone();
    arguments.extend([
        "-cp".to_owned(),
        LIBRARIES.join(":"),
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn".to_owned(),
        "-Dzookeeper.forceSync=no".to_owned(),
        "-Djava.net.preferIPv4Stack=true".to_owned(),
        "org.apache.zookeeper.server.quorum.QuorumPeerMain".to_owned(),
        settings.display().to_string(),
    ]);
    Ok(arguments)
}

/// Waits until something is so.
#[expect(
    clippy::disallowed_methods,
    reason = "servers are waited for where there may be no runtime to wait on"
)]
fn until(is_so: impl Fn() -> bool) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        if Instant::now() > end {
            return Err(io::Error::other("it did not come about within a minute"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
