//! A primary and its replicas, with nobody who watches them: who is the primary changes only when a test says so.

use std::io;

use super::{Redis, Role, Setup, together, url};
use crate::servers::StartError;

/// A primary and its replicas. Member 0 starts as the primary.
///
/// A member that restarts is again what it was before, also if another was promoted meanwhile: it was not told.
#[derive(Debug)]
pub struct Replicated {
    members: Vec<Redis>,
    primary: usize,
}

impl Replicated {
    /// Starts a primary and so many replicas, and waits until these have all its data.
    ///
    /// # Errors
    /// [`StartError`], of the first that did not start.
    pub fn start(replicas: usize) -> Result<Self, StartError> {
        Self::start_as(replicas, &Setup::new())
    }

    /// Starts them as they are asked for.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_as(replicas: usize, setup: &Setup) -> Result<Self, StartError> {
        let members = together::start(1 + replicas, |_| Redis::start_as(setup))?;
        let replicated = Self { members, primary: 0 };
        let settled = (1..=replicas).try_for_each(|index| replicated.demote(index));
        let settled = settled.and_then(|()| replicated.await_settled());
        settled.map_err(|error| together::not_ready(&error, &replicated.members))?;
        Ok(replicated)
    }

    /// The URL of all of them: whoever connects finds the primary.
    pub fn url(&self) -> String {
        url("redis+replicas", &self.members)
    }

    /// The present primary: the one that was promoted last.
    pub fn primary(&self) -> &Redis {
        &self.members[self.primary]
    }

    /// Which member that is.
    pub fn primary_index(&self) -> usize {
        self.primary
    }

    /// All of them, in the order they were started.
    pub fn members(&self) -> &[Redis] {
        &self.members
    }

    /// All of them, to crash and restart.
    pub fn members_mut(&mut self) -> &mut [Redis] {
        &mut self.members
    }

    /// Makes this member a primary (`REPLICAOF NO ONE`), and the one that [`primary`](Self::primary) names. The
    /// others are not told: the old primary goes on taking writes.
    ///
    /// # Errors
    /// If the member refuses or does not answer.
    pub fn promote(&mut self, index: usize) -> io::Result<()> {
        self.members[index].demand(&["REPLICAOF", "NO", "ONE"])?;
        self.members[index].demand(&["CONFIG", "REWRITE"])?;
        self.primary = index;
        Ok(())
    }

    /// Makes this member follow the present primary (`REPLICAOF`); what only it had is lost.
    ///
    /// # Errors
    /// If the member refuses or does not answer.
    pub fn demote(&self, index: usize) -> io::Result<()> {
        let port = self.primary().port().to_string();
        self.members[index].demand(&["REPLICAOF", "127.0.0.1", &port])?;
        self.members[index].demand(&["CONFIG", "REWRITE"]).map(drop)
    }

    /// Promotes this member, demotes all others, and waits until they follow.
    ///
    /// # Errors
    /// If a member does not answer or they do not settle.
    pub fn switch_over(&mut self, index: usize) -> io::Result<()> {
        self.promote(index)?;
        for other in (0..self.members.len()).filter(|other| *other != index) {
            self.demote(other)?;
        }
        self.await_settled()
    }

    /// Waits until every other member follows the present primary and has all its data.
    ///
    /// # Errors
    /// If that is not so within a minute.
    pub fn await_settled(&self) -> io::Result<()> {
        let settled = || follow(&self.members, self.primary).then_some(());
        together::until("every replica follows the primary", settled)
    }
}

/// Whether all but `primary` follow it, and it says so too.
pub(super) fn follow(members: &[Redis], primary: usize) -> bool {
    let head = &members[primary];
    let online = head
        .demand(&["INFO", "replication"])
        .map_or(0, |info| info.text().unwrap_or_default().matches("state=online").count());
    let others = members.iter().enumerate().filter(|(index, _)| *index != primary);
    let linked = Role::Replica { of: head.port(), linked: true };
    online == members.len() - 1
        && head.role().is_ok_and(|role| role == Role::Primary)
        && others.into_iter().all(|(_, member)| member.role().is_ok_and(|role| role == linked))
}
