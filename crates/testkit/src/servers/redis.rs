//! A single Redis, without persistence unless asked for.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream},
    ops::{Deref, DerefMut},
    path::Path,
    time::Duration,
};

use super::{Recipe, Server, StartError};

/// How long a Redis that runs may take for a PING. One that is paused takes longer, and is found out by it.
const ANSWER: Duration = Duration::from_millis(300);

/// One Redis.
#[derive(Debug)]
pub struct Redis(Server);

impl Redis {
    /// Forgets everything when it restarts: the worst case for a lock.
    const FORGETFUL: Recipe = Recipe { arguments: forgetful, ..Self::DURABLE };

    /// Writes every command to disk before it answers.
    const DURABLE: Recipe =
        Recipe { program: "redis-server", package: "redis-server", arguments: durable, answers: pongs };

    /// Starts a Redis that keeps nothing on disk.
    ///
    /// # Errors
    /// [`StartError`], with the end of the server's own log where there is one.
    pub fn start() -> Result<Self, StartError> {
        Server::start(Self::FORGETFUL).map(Self)
    }

    /// Starts a Redis that keeps everything on disk, and has it again after a restart.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_durable() -> Result<Self, StartError> {
        Server::start(Self::DURABLE).map(Self)
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Sends one command of plain words and returns the first line of the answer, as Redis writes it.
    ///
    /// # Errors
    /// If the server does not answer in time.
    pub fn command(&self, words: &[&str]) -> std::io::Result<String> {
        command(self.address(), words)
    }
}

impl Deref for Redis {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0
    }
}

impl DerefMut for Redis {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.0
    }
}

fn forgetful(port: u16, folder: &Path) -> Vec<String> {
    with_persistence(port, folder, "no")
}

fn durable(port: u16, folder: &Path) -> Vec<String> {
    with_persistence(port, folder, "yes")
}

fn with_persistence(port: u16, folder: &Path, append_only: &str) -> Vec<String> {
    let (port, folder) = (port.to_string(), folder.to_string_lossy());
    let options: [(&str, &str); 8] = [
        ("--port", &port),
        ("--bind", "127.0.0.1"),
        ("--dir", &folder),
        ("--save", ""),
        ("--daemonize", "no"),
        ("--maxmemory-policy", "noeviction"),
        ("--appendonly", append_only),
        ("--appendfsync", "always"),
    ];
    options.iter().flat_map(|(option, value)| [(*option).to_owned(), (*value).to_owned()]).collect()
}

fn pongs(address: SocketAddr) -> bool {
    command(address, &["PING"]).is_ok_and(|answer| answer == "+PONG")
}

fn command(address: SocketAddr, words: &[&str]) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER)?;
    stream.set_read_timeout(Some(ANSWER))?;
    write!(stream, "*{}\r\n", words.len())?;
    for word in words {
        write!(stream, "${}\r\n{word}\r\n", word.len())?;
    }
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}
