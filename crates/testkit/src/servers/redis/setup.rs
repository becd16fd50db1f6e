//! Which server to run, and how it keeps what it is told.

use std::{
    ffi::OsString,
    io, iter,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::OnceLock,
};

use super::{ANSWER, resp};
use crate::servers::{
    Recipe, Server, StartError,
    process::{Variables, is_installed},
    start_or_skip,
};

/// Whose server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Brand {
    /// `redis-server` on the path: what the distribution has.
    #[default]
    Redis,
    /// Valkey, newer than most distributions' Redis: the program that [`Brand::VALKEY`] names, else `valkey-server`
    /// on the path.
    Valkey,
}

impl Brand {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::Redis, Self::Valkey];

    /// The variable that names Valkey's program. `cargo xtask test` installs one and sets it.
    pub const VALKEY: &str = "LEASEHOLD_VALKEY";

    /// The brands to test with: all of them. One that is not installed fails the test, or is skipped aloud, as
    /// [`Missing`](crate::servers::Missing) says.
    ///
    /// # Panics
    /// If one is not installed and must not be missing.
    pub fn to_test() -> Vec<Self> {
        Self::ALL.into_iter().filter(|brand| start_or_skip(|| brand.find()).is_some()).collect()
    }

    /// Its program, as it is started.
    pub fn program(self) -> &'static str {
        static VALKEY: OnceLock<String> = OnceLock::new();
        let named = || std::env::var(Self::VALKEY).unwrap_or_else(|_| "valkey-server".to_owned());
        match self {
            Self::Redis => "redis-server",
            Self::Valkey => VALKEY.get_or_init(named),
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Redis => "redis-server",
            Self::Valkey => "valkey-server",
        }
    }

    fn find(self) -> Result<(), StartError> {
        let (program, package) = (self.program(), self.package());
        if is_installed(program) {
            return Ok(());
        }
        Err(StartError::NotInstalled { program: program.to_owned(), package })
    }

    fn recipe(self, arguments: fn(u16, &Path) -> Vec<String>) -> Recipe {
        Recipe { program: self.program(), package: self.package(), arguments, answers: pongs }
    }
}

/// What a server has again after a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keeps {
    /// Nothing: the worst case for a lock.
    #[default]
    Nothing,
    /// What the operating system wrote by itself (`appendfsync no`). A crash of the process alone loses nothing that
    /// was answered; a crash of the machine would.
    Unsynced,
    /// All but the last second (`appendfsync everysec`).
    EverySecond,
    /// Everything it answered (`appendfsync always`).
    EveryWrite,
}

/// How to set up a server, or each server of a topology.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    brand: Brand,
    keeps: Keeps,
    settings: Vec<String>,
    variables: Variables,
    source: Option<Ipv4Addr>,
}

impl Setup {
    /// Redis, keeping nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Another brand.
    #[must_use]
    pub fn with_brand(self, brand: Brand) -> Self {
        Self { brand, ..self }
    }

    /// Keeping more on disk.
    #[must_use]
    pub fn with_keeps(self, keeps: Keeps) -> Self {
        Self { keeps, ..self }
    }

    /// One more setting, as in the server's own file: `with_setting("min-replicas-to-write", "1")`.
    #[must_use]
    pub fn with_setting(mut self, name: &str, value: &str) -> Self {
        self.settings.extend([format!("--{name}"), value.to_owned()]);
        self
    }

    /// One more variable in the server's environment.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// Servers speak to each other from this address of the loopback network, and clients from the usual one: so they can
    /// be told apart.
    #[must_use]
    pub fn with_source(self, address: Ipv4Addr) -> Self {
        Self { source: Some(address), ..self }
    }

    /// The same for one of several that speak from addresses of their own: the first from the address that was named, the
    /// others from those that follow it.
    pub(super) fn numbered(&self, number: usize) -> Self {
        let source = self.source.map(|first| nth_after(first, number));
        Self { source, ..self.clone() }
    }

    /// Starts a server of data.
    pub(super) fn start(&self) -> Result<Server, StartError> {
        self.start_with(|| Ok(Vec::new()))
    }

    /// Starts a server of data with arguments that may differ for each attempt.
    pub(super) fn start_with(
        &self,
        more: impl Fn() -> io::Result<Vec<String>>,
    ) -> Result<Server, StartError> {
        let fixed = [self.persistence(), self.settings.clone(), self.speech()].concat();
        let arguments = || Ok([fixed.clone(), more()?].concat());
        Server::start_among(self.brand.recipe(data), &self.variables, arguments)
    }

    /// Starts a sentinel that watches nothing yet.
    pub(super) fn start_sentinel(&self) -> Result<Server, StartError> {
        let source: Vec<String> = self.source.map(bind_source).into_iter().flatten().collect();
        Server::start_with(self.brand.recipe(sentinel), || Ok(source.clone()))
    }

    /// What a server of data needs to speak from an address of its own: it is still found at the usual one, and does not
    /// take its peers for strangers.
    fn speech(&self) -> Vec<String> {
        let Some(source) = self.source else { return Vec::new() };
        let more = ["--replica-announce-ip", "127.0.0.1", "--cluster-announce-ip", "127.0.0.1"];
        let more = more.into_iter().chain(["--protected-mode", "no"]).map(str::to_owned);
        bind_source(source).into_iter().chain(more).collect()
    }

    fn persistence(&self) -> Vec<String> {
        let (append_only, sync) = match self.keeps {
            Keeps::Nothing => ("no", "no"),
            Keeps::Unsynced => ("yes", "no"),
            Keeps::EverySecond => ("yes", "everysec"),
            Keeps::EveryWrite => ("yes", "always"),
        };
        ["--appendonly", append_only, "--appendfsync", sync].map(str::to_owned).to_vec()
    }
}

fn bind_source(source: Ipv4Addr) -> [String; 2] {
    ["--bind-source-addr".to_owned(), source.to_string()]
}

/// The address so many after this one.
fn nth_after(first: Ipv4Addr, number: usize) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(first).saturating_add(u32::try_from(number).unwrap_or(u32::MAX)))
}

/// A server of data has a file too, empty at first: what others make of it, such as a replica, it can write down there.
fn data(port: u16, folder: &Path) -> Vec<String> {
    let file = own_file(folder, "data.conf", "");
    let (port, folder) = (port.to_string(), folder.to_string_lossy());
    let options: [(&str, &str); 7] = [
        ("--port", &port),
        ("--bind", "127.0.0.1"),
        ("--dir", &folder),
        ("--save", ""),
        ("--daemonize", "no"),
        ("--maxmemory-policy", "noeviction"),
        // The default waits five seconds for more replicas before it sends the first its copy.
        ("--repl-diskless-sync-delay", "0"),
    ];
    let options = options.iter().flat_map(|(option, value)| [(*option).to_owned(), (*value).to_owned()]);
    iter::once(file).chain(options).collect()
}

/// A sentinel keeps what it learns in its file, which must be there, and has it again after a restart.
fn sentinel(port: u16, folder: &Path) -> Vec<String> {
    let address = "bind 127.0.0.1\nsentinel announce-ip 127.0.0.1";
    let settings = format!("port {port}\n{address}\ndir {}\n", folder.display());
    vec![own_file(folder, "sentinel.conf", &settings), "--sentinel".to_owned()]
}

/// The file of a server, made before its first start and left alone after: it is the server's.
fn own_file(folder: &Path, name: &str, content: &str) -> String {
    let file = folder.join(name);
    if !file.exists() {
        // If that fails the server says so: it does not start without the file it is given.
        drop(std::fs::write(&file, content));
    }
    file.to_string_lossy().into_owned()
}

fn pongs(address: SocketAddr) -> bool {
    resp::first_line(address, &["PING"], ANSWER).is_ok_and(|answer| answer == "+PONG")
}
