//! Several ZooKeepers that are one.

use std::io;

use super::{PORTS, Setup, StartError, ZooKeeper, free_port, until};

/// An ensemble. Dropping it kills its servers.
#[derive(Debug)]
pub struct Ensemble {
    members: Vec<ZooKeeper>,
}

impl Ensemble {
    /// Starts so many servers and waits until all of them serve.
    ///
    /// # Errors
    /// [`StartError`], with the end of a server's own log where there is one.
    pub fn start(count: usize) -> Result<Self, StartError> {
        Self::start_as(count, &Setup::new())
    }

    /// Starts so many servers with settings of their own.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_as(count: usize, setup: &Setup) -> Result<Self, StartError> {
        let mut last = None;
        for _ in 0..PORTS {
            match Self::start_once(count, setup.clone()) {
                Err(error @ StartError::Exited { .. }) => last = Some(error),
                started => return started,
            }
        }
        Err(last.unwrap_or_else(|| StartError::System(io::Error::other("no port was tried"))))
    }

    fn start_once(count: usize, mut setup: Setup) -> Result<Self, StartError> {
        for number in 1..=count {
            let (peers, votes) = (free_port()?, free_port()?);
            setup = setup.with_line(format!("server.{number}=127.0.0.1:{peers}:{votes}"));
        }
        let mut members = Vec::new();
        for number in 1..=count {
            members.push(ZooKeeper::start_on(&setup, number, free_port()?)?);
        }
        for member in &members {
            member.await_serving()?;
        }
        Ok(Self { members })
    }

    /// Its URL, with all members.
    pub fn url(&self) -> String {
        let addresses: Vec<String> = self.members.iter().map(|member| member.address().to_string()).collect();
        format!("zookeeper://{}", addresses.join(","))
    }

    /// Its members.
    pub fn members(&self) -> &[ZooKeeper] {
        &self.members
    }

    /// Its members, to crash and restart them.
    pub fn members_mut(&mut self) -> &mut [ZooKeeper] {
        &mut self.members
    }

    /// Which member leads, once one does.
    ///
    /// # Errors
    /// If none does within a minute.
    pub fn leader(&self) -> io::Result<usize> {
        let found = || self.members.iter().position(|member| member.mode().as_deref() == Some("leader"));
        until(|| found().is_some())?;
        found().ok_or_else(|| io::Error::other("the leader is gone again"))
    }
}
