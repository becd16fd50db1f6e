//! Several members of one etcd.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use super::{Etcd, RECIPE, member};
use crate::servers::{Server, StartError, free_port};

/// How long members may take to agree.
const PATIENCE: Duration = Duration::from_secs(60);

/// Several members of one etcd, on this machine.
#[derive(Debug)]
pub struct Cluster(Vec<Etcd>);

impl Cluster {
    /// Starts three members and waits until all of them are well.
    ///
    /// # Errors
    /// [`StartError`], of the first that did not start.
    pub fn start() -> Result<Self, StartError> {
        Self::start_of(3)
    }

    /// Starts so many members. They wait for each other, so they are started side by side.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_of(count: usize) -> Result<Self, StartError> {
        let peers = (0..count)
            .map(|at| Ok((format!("member{at}"), format!("http://127.0.0.1:{}", free_port()?))))
            .collect::<io::Result<Vec<_>>>()?;
        let all = peers.iter().map(|(name, peer)| format!("{name}={peer}")).collect::<Vec<_>>().join(",");
        let members: Result<Vec<Etcd>, StartError> = thread::scope(|scope| {
            let start = |(name, peer): &(String, String)| {
                let arguments = member(name, peer, &all);
                scope.spawn(move || Server::start_with(RECIPE, || Ok(arguments.clone())).map(Etcd))
            };
            let starting: Vec<_> = peers.iter().map(start).collect();
            let crashed = |_| StartError::System(io::Error::other("the thread that started it panicked"));
            starting.into_iter().map(|started| started.join().map_err(crashed)?).collect()
        });
        members.map(Self)
    }

    /// The URL that names all members.
    pub fn url(&self) -> String {
        let places: Vec<String> = self.0.iter().map(|member| member.address().to_string()).collect();
        format!("etcd://{}", places.join(","))
    }

    /// The members.
    pub fn members(&self) -> &[Etcd] {
        &self.0
    }

    /// The members, to crash and restart.
    pub fn members_mut(&mut self) -> &mut [Etcd] {
        &mut self.0
    }

    /// Starts these members again after a crash. They may wait for each other, so they are started side by side.
    ///
    /// # Errors
    /// If one of them does not start.
    pub fn restart(&mut self, who: &[usize]) -> io::Result<()> {
        thread::scope(|scope| {
            let named = self.0.iter_mut().enumerate().filter(|(at, _)| who.contains(at));
            let starting: Vec<_> = named.map(|(_, member)| scope.spawn(|| member.restart())).collect();
            let crashed = |_| io::Error::other("the thread that started it panicked");
            starting
                .into_iter()
                .try_for_each(|started| started.join().map_err(crashed)?.map_err(io::Error::other))
        })
    }

    /// Which member leads, once one does.
    ///
    /// # Errors
    /// If none does for a minute.
    #[expect(clippy::disallowed_methods, reason = "these verbs block; no runtime waits on them")]
    pub fn leader(&self) -> io::Result<usize> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.0.iter().position(|member| member.leads().unwrap_or(false)) {
                return Ok(at);
            }
            if Instant::now() > end {
                return Err(io::Error::other("no member leads"));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}
