//! memcached, as it is run: one process that keeps nothing. See [`servers`](super).

use std::{
    fs,
    io::{self, BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream},
    ops::{Deref, DerefMut},
    path::Path,
    time::Duration,
};

use super::{Recipe, Server, StartError};

/// How long a memcached that runs may take to answer.
const ANSWER: Duration = Duration::from_secs(2);

/// One memcached.
#[derive(Debug)]
pub struct Memcached(Server);

impl Memcached {
    /// The user that [`start_guarded`](Self::start_guarded) lets in.
    pub const USER: &str = "holder";
    /// That user's password.
    pub const PASSWORD: &str = "right";

    /// Starts a memcached with 64 MB.
    ///
    /// # Errors
    /// [`StartError`], with the end of the server's own log where there is one.
    pub fn start() -> Result<Self, StartError> {
        Self::start_with(&["-m", "64"])
    }

    /// Starts one with these arguments besides the usual ones.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_with(more: &[&str]) -> Result<Self, StartError> {
        let more: Vec<String> = more.iter().copied().map(ToOwned::to_owned).collect();
        Server::start_with(recipe(arguments), || Ok(more.clone())).map(Self)
    }

    /// Starts one that wants a user and a password.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_guarded() -> Result<Self, StartError> {
        Server::start(recipe(guarded)).map(Self)
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("memcached://{}", self.address())
    }

    /// Sends one command and returns the first line of the answer.
    ///
    /// # Errors
    /// If the server does not answer in time.
    pub fn command(&self, command: &str) -> io::Result<String> {
        let mut answer = ask(self.address(), command)?;
        line(&mut answer)
    }

    /// Sends one command and returns the lines of the answer, up to its `END`.
    ///
    /// # Errors
    /// If the server does not answer in time, or with anything that has no end.
    pub fn lines(&self, command: &str) -> io::Result<Vec<String>> {
        let (mut answer, mut lines) = (ask(self.address(), command)?, Vec::new());
        loop {
            match line(&mut answer)? {
                end if end == "END" => return Ok(lines),
                refusal if refusal.is_empty() || refusal.contains("ERROR") => {
                    return Err(io::Error::other(refusal));
                }
                line => lines.push(line),
            }
        }
    }

    /// Forgets everything.
    ///
    /// # Errors
    /// If the server does not answer in time.
    pub fn flush(&self) -> io::Result<()> {
        match self.command("flush_all")?.as_str() {
            "OK" => Ok(()),
            refusal => Err(io::Error::other(refusal.to_owned())),
        }
    }

    /// Writes so many items of each of these sizes, so that it has to evict others.
    ///
    /// # Errors
    /// If the server does not take them.
    pub fn fill(&self, sizes: &[usize], count: usize) -> io::Result<()> {
        for size in sizes {
            let value = "x".repeat(*size);
            let fill = |item| format!("set fill:{size}:{item} 0 0 {size} noreply\r\n{value}\r\n");
            let items = (0..count).map(fill).collect::<Vec<_>>().concat();
            // The answer to the last command comes after all of them.
            line(&mut ask(self.address(), &format!("{items}mn"))?)?;
        }
        Ok(())
    }

    /// One number of its `stats`.
    ///
    /// # Errors
    /// If the server does not answer in time, or has no such number.
    pub fn count(&self, name: &str) -> io::Result<u64> {
        let mut answer = ask(self.address(), "stats")?;
        loop {
            let line = line(&mut answer)?;
            let value = line.strip_prefix("STAT ").and_then(|stat| stat.strip_prefix(name));
            match value.and_then(|value| value.trim().parse().ok()) {
                Some(count) => return Ok(count),
                None if line == "END" => return Err(io::Error::other(format!("no number {name}"))),
                None => {}
            }
        }
    }
}

impl Deref for Memcached {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0
    }
}

impl DerefMut for Memcached {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.0
    }
}

fn recipe(arguments: fn(u16, &Path) -> Vec<String>) -> Recipe {
    Recipe { program: "memcached", package: "memcached", arguments, answers }
}

fn arguments(port: u16, _folder: &Path) -> Vec<String> {
    // As root it insists on a user to become; as anybody else it stays who it is.
    let fixed = ["-U", "0", "-l", "127.0.0.1", "-t", "2", "-u", "nobody"];
    let fixed = fixed.map(ToOwned::to_owned);
    ["-p".to_owned(), port.to_string()].into_iter().chain(fixed).collect()
}

fn guarded(port: u16, folder: &Path) -> Vec<String> {
    let users = folder.join("users");
    // A server without its file of users does not start, and says so.
    drop(fs::write(&users, format!("{}:{}\n", Memcached::USER, Memcached::PASSWORD)));
    let file = ["-Y".to_owned(), users.display().to_string()];
    arguments(port, folder).into_iter().chain(file).collect()
}

/// One that wants a user answers with a refusal, which is an answer.
fn answers(address: SocketAddr) -> bool {
    let said = ask(address, "version").and_then(|mut answer| line(&mut answer));
    said.is_ok_and(|said| said.starts_with("VERSION") || said.contains("unauthenticated"))
}

fn ask(address: SocketAddr, command: &str) -> io::Result<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.write_all(format!("{command}\r\n").as_bytes())?;
    Ok(BufReader::new(stream))
}

fn line(answer: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    answer.read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}
