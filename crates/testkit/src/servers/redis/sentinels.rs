//! A primary, two replicas, and three sentinels that watch them and choose another primary when it is gone.

use std::{io, net::SocketAddr, time::Duration};

use super::{Redis, Replicated, Reply, Role, Setup, replicated::follow, together, url};
use crate::servers::StartError;

const REPLICAS: usize = 2;
const SENTINELS: usize = 3;
const QUORUM: &str = "2";

/// Servers watched by sentinels. Member 0 starts as the primary.
///
/// A crash is noticed after half a second, and a new primary is there about two seconds after it. A primary that comes
/// back believes itself one until the sentinels tell it otherwise, about ten seconds later. So does one that was
/// replaced by [`failover`](Self::failover). Half a second is short: on a machine that is very busy the sentinels may
/// choose another for no other reason, so ask who is the primary rather than remember it.
#[derive(Debug)]
pub struct Sentinels {
    data: Replicated,
    sentinels: Vec<Redis>,
}

impl Sentinels {
    /// What the sentinels call the servers they watch.
    pub const SERVICE: &str = "mymaster";

    /// Starts them all, and waits until each sentinel knows all others and both replicas.
    ///
    /// # Errors
    /// [`StartError`], of the first that did not start.
    pub fn start() -> Result<Self, StartError> {
        Self::start_as(&Setup::new())
    }

    /// Starts them as they are asked for.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_as(setup: &Setup) -> Result<Self, StartError> {
        let data = Replicated::start_as(REPLICAS, setup)?;
        let sentinels = together::start(SENTINELS, |_| setup.start_sentinel().map(Redis))?;
        let started = Self { data, sentinels };
        started.watch().map_err(|error| together::not_ready(&error, &started.sentinels))?;
        Ok(started)
    }

    fn watch(&self) -> io::Result<()> {
        let port = self.data.primary().port().to_string();
        for sentinel in &self.sentinels {
            sentinel.demand(&["SENTINEL", "MONITOR", Self::SERVICE, "127.0.0.1", &port, QUORUM])?;
            for (name, value) in
                [("down-after-milliseconds", "500"), ("failover-timeout", "3000"), ("parallel-syncs", "1")]
            {
                sentinel.demand(&["SENTINEL", "SET", Self::SERVICE, name, value])?;
            }
        }
        together::until("every sentinel knows all the others and both replicas", || {
            self.sentinels.iter().all(is_complete).then_some(())
        })
    }

    /// A primary is believed to be down after this long without an answer. For tests that are not about that: a busy
    /// machine is no failure.
    ///
    /// # Errors
    /// If a sentinel does not take it.
    pub fn notice_after(&self, silence: Duration) -> io::Result<()> {
        let silence = silence.as_millis().to_string();
        self.sentinels.iter().try_for_each(|sentinel| {
            sentinel
                .demand(&["SENTINEL", "SET", Self::SERVICE, "down-after-milliseconds", &silence])
                .map(drop)
        })
    }

    /// The URL that names the sentinels and the service.
    pub fn url(&self) -> String {
        format!("{}/{}", url("redis+sentinel", &self.sentinels), Self::SERVICE)
    }

    /// The servers with data, in the order they were started.
    pub fn members(&self) -> &[Redis] {
        self.data.members()
    }

    /// The servers with data, to crash and restart.
    pub fn members_mut(&mut self) -> &mut [Redis] {
        self.data.members_mut()
    }

    /// The sentinels.
    pub fn sentinels(&self) -> &[Redis] {
        &self.sentinels
    }

    /// The sentinels, to crash and restart.
    pub fn sentinels_mut(&mut self) -> &mut [Redis] {
        &mut self.sentinels
    }

    /// Which member is the primary now: all sentinels that answer say so, and it does itself. Waits for that.
    ///
    /// # Errors
    /// If it is not so within a minute.
    pub fn primary(&self) -> io::Result<usize> {
        together::until("the sentinels agree on a primary", || self.agreed())
    }

    /// Where the primary is now.
    ///
    /// # Errors
    /// As for [`primary`](Self::primary).
    pub fn primary_address(&self) -> io::Result<SocketAddr> {
        self.primary().map(|index| self.members()[index].address())
    }

    /// Has the sentinels choose another primary (`SENTINEL FAILOVER`), waits for it, and returns which it is.
    ///
    /// # Errors
    /// If the sentinels refuse, or there is none within a minute.
    pub fn failover(&self) -> io::Result<usize> {
        let before = self.primary()?;
        let sentinel = self.sentinels.iter().find(|sentinel| sentinel.answers());
        let sentinel = sentinel.ok_or_else(|| io::Error::other("no sentinel answers; restart one"))?;
        sentinel.demand(&["SENTINEL", "FAILOVER", Self::SERVICE])?;
        self.await_failover(before)
    }

    /// Kills the primary (SIGKILL), and returns which it was.
    ///
    /// # Errors
    /// As for [`primary`](Self::primary).
    pub fn crash_primary(&mut self) -> io::Result<usize> {
        let primary = self.primary()?;
        self.members_mut()[primary].crash()?;
        Ok(primary)
    }

    /// Waits until another than `before` is the primary, and returns which.
    ///
    /// # Errors
    /// If there is none within a minute.
    pub fn await_failover(&self, before: usize) -> io::Result<usize> {
        let other = || self.agreed().filter(|primary| *primary != before);
        together::until("the sentinels chose another primary", other)
    }

    /// Waits until all members run, and all but the primary follow it. After a restart of an old primary that is when
    /// the sentinels have demoted it.
    ///
    /// # Errors
    /// If that is not so within a minute.
    pub fn await_settled(&self) -> io::Result<()> {
        let settled = || self.agreed().filter(|primary| follow(self.members(), *primary)).map(drop);
        together::until("all members follow the primary", settled)
    }

    fn agreed(&self) -> Option<usize> {
        let mut ports = self.sentinels.iter().filter_map(primary_port);
        let port = ports.next()?;
        if ports.any(|other| other != port) {
            return None;
        }
        let primary = self.members().iter().position(|member| member.port() == port)?;
        self.members()[primary].role().is_ok_and(|role| role == Role::Primary).then_some(primary)
    }
}

fn primary_port(sentinel: &Redis) -> Option<u16> {
    let reply = sentinel.demand(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", Sentinels::SERVICE]).ok()?;
    reply.parts().get(1)?.text()?.parse().ok()
}

/// Whether a sentinel knows all the others and both replicas, and has asked these how they are: before that it would
/// refuse to promote one.
fn is_complete(sentinel: &Redis) -> bool {
    let quorum = sentinel.demand(&["SENTINEL", "CKQUORUM", Sentinels::SERVICE]);
    let replicas = sentinel.demand(&["SENTINEL", "REPLICAS", Sentinels::SERVICE]);
    let enough = format!("OK {SENTINELS} ");
    quorum.is_ok_and(|reply| reply.text().is_some_and(|text| text.starts_with(&enough)))
        && replicas.is_ok_and(|reply| {
            let well = |replica: &&Reply| field(replica, "master-link-status") == Some("ok");
            reply.parts().iter().filter(well).count() == REPLICAS
        })
}

/// One field of a reply that lists names and values in turn.
fn field<'a>(reply: &'a Reply, name: &str) -> Option<&'a str> {
    let mut pairs = reply.parts().chunks_exact(2);
    pairs.find(|pair| pair[0].text() == Some(name)).and_then(|pair| pair[1].text())
}
