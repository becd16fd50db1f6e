//! Redis as it is run: alone, with replicas, watched by sentinels, as a cluster, and as several that know nothing of
//! each other. Each server is a real process; see [`servers`](super).
//!
//! Every verb blocks until it is done, or until a minute has passed; none needs a runtime. Waiting is for what the
//! servers themselves say, never for a time.

mod cluster;
mod independent;
mod replicated;
mod resp;
mod sentinels;
mod setup;
mod together;

use std::{
    io,
    ops::{Deref, DerefMut},
    time::Duration,
};

pub use self::{
    cluster::{Cluster, Migration},
    independent::Independent,
    replicated::Replicated,
    resp::Reply,
    sentinels::Sentinels,
    setup::{Brand, Keeps, Setup},
};
use super::{Server, StartError};

/// How long a Redis that runs may take for a PING. One that is paused takes longer, and is found out by it.
const ANSWER: Duration = Duration::from_millis(300);

/// How long it may take for any command.
const PATIENCE: Duration = Duration::from_secs(2);

/// One Redis.
#[derive(Debug)]
pub struct Redis(Server);

/// What a Redis says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// It takes writes.
    Primary,
    /// It follows another.
    Replica {
        /// The port of the one it follows.
        of: u16,
        /// Whether it is connected to that one and has all of its data.
        linked: bool,
    },
    /// It keeps no data; it watches those that do.
    Sentinel,
}

impl Redis {
    /// Starts a Redis that keeps nothing on disk.
    ///
    /// # Errors
    /// [`StartError`], with the end of the server's own log where there is one.
    pub fn start() -> Result<Self, StartError> {
        Self::start_as(&Setup::new())
    }

    /// Starts a Redis that keeps everything on disk, and has it again after a restart.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_durable() -> Result<Self, StartError> {
        Self::start_as(&Setup::new().with_keeps(Keeps::EveryWrite))
    }

    /// Starts a Redis, or another of its kind, as it is asked for.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_as(setup: &Setup) -> Result<Self, StartError> {
        setup.start().map(Self)
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Sends one command of plain words and returns the first line of the answer, as Redis writes it.
    ///
    /// # Errors
    /// If the server does not answer in time.
    pub fn command(&self, words: &[&str]) -> io::Result<String> {
        resp::first_line(self.address(), words, ANSWER)
    }

    /// Sends one command and returns the whole answer, which may be [`Reply::Error`].
    ///
    /// # Errors
    /// If the server does not answer in time.
    pub fn ask(&self, words: &[&str]) -> io::Result<Reply> {
        resp::ask(self.address(), words, PATIENCE)
    }

    /// Sends one command that must succeed.
    ///
    /// # Errors
    /// If the server does not answer in time, or answers with an error.
    pub fn demand(&self, words: &[&str]) -> io::Result<Reply> {
        match self.ask(words)? {
            Reply::Error(error) => {
                let message = format!("{} refused {}: {error}", self.address(), words.join(" "));
                Err(io::Error::other(message))
            }
            reply => Ok(reply),
        }
    }

    /// What it says it is.
    ///
    /// # Errors
    /// If it does not answer in time, or not as expected.
    pub fn role(&self) -> io::Result<Role> {
        let reply = self.demand(&["ROLE"])?;
        let role = match reply.parts() {
            [Reply::Text(role), ..] if role == "master" => Some(Role::Primary),
            [Reply::Text(role), ..] if role == "sentinel" => Some(Role::Sentinel),
            [Reply::Text(role), _, Reply::Integer(port), Reply::Text(state), ..] if role == "slave" => {
                let linked = state == "connected";
                u16::try_from(*port).ok().map(|of| Role::Replica { of, linked })
            }
            _ => None,
        };
        role.ok_or_else(|| io::Error::other(format!("{} says an unknown role: {reply:?}", self.address())))
    }

    /// One line of its `INFO`: the value of `field`, if there is such a line.
    ///
    /// # Errors
    /// If it does not answer in time.
    pub fn info(&self, field: &str) -> io::Result<Option<String>> {
        let reply = self.demand(&["INFO"])?;
        let mut lines = reply.text().unwrap_or_default().lines();
        let value = lines.find_map(|line| line.strip_prefix(field)?.strip_prefix(':').map(str::to_owned));
        Ok(value)
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

/// `scheme://host:port,host:port`.
fn url(scheme: &str, servers: &[Redis]) -> String {
    let addresses: Vec<String> = servers.iter().map(|server| server.address().to_string()).collect();
    format!("{scheme}://{}", addresses.join(","))
}
