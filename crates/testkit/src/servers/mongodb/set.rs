//! A replica set of three, with short elections.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use super::{Mongodb, Value, fields, wire};
use crate::servers::StartError;

/// The name of the set.
const NAME: &str = "rs0";

/// How long the members may take to agree on anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// Three servers that follow a primary of their choice.
#[derive(Debug)]
pub struct ReplicaSet(Vec<Mongodb>);

impl ReplicaSet {
    /// Starts three members and waits until one is the primary and the others follow.
    ///
    /// # Errors
    /// [`StartError`], of the first that did not start, or if they do not agree.
    pub fn start() -> Result<Self, StartError> {
        Self::start_electing(Duration::from_secs(1))
    }

    /// The same, with members that wait for so long before they choose another primary.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_electing(after: Duration) -> Result<Self, StartError> {
        let member = || Mongodb::start_with(&["--replSet", NAME, "--oplogSize", "16"]);
        let members = thread::scope(|scope| {
            let starting: Vec<_> = (0..3).map(|_| scope.spawn(member)).collect();
            let joined = starting.into_iter().map(|thread| match thread.join() {
                Ok(started) => started,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            // All are joined before the first error is returned, so that those that did start end here.
            joined.collect::<Vec<_>>().into_iter().collect::<Result<Vec<_>, _>>()
        })?;
        let set = Self(members);
        set.begin(after)?;
        Ok(set)
    }

    fn begin(&self, after: Duration) -> io::Result<()> {
        let member = |(index, server): (i64, &Mongodb)| {
            fields([("_id", index.into()), ("host", server.address().to_string().as_str().into())])
        };
        let members = (0..).zip(&self.0).map(member).collect();
        let elect = i64::try_from(after.as_millis()).unwrap_or(10_000);
        let settings = fields([
            ("electionTimeoutMillis", elect.into()),
            ("heartbeatIntervalMillis", (elect / 5).into()),
        ]);
        let config =
            fields([("_id", NAME.into()), ("members", Value::List(members)), ("settings", settings)]);
        self.0[0].demand(&fields([("replSetInitiate", config), ("$db", "admin".into())]))?;
        self.settled()
    }

    /// Waits until one is the primary and the others follow.
    ///
    /// # Errors
    /// If they do not within a minute.
    pub fn settled(&self) -> io::Result<()> {
        self.until("a primary that two follow", || {
            let following = self.0.iter().filter(|member| member.is("secondary")).count();
            (self.primary().is_some() && following == 2).then_some(())
        })
    }

    /// The URL that names them all.
    pub fn url(&self) -> String {
        let hosts: Vec<String> = self.0.iter().map(|member| member.address().to_string()).collect();
        format!("mongodb://{}/?replicaSet={NAME}", hosts.join(","))
    }

    /// Each of them.
    pub fn members(&self) -> &[Mongodb] {
        &self.0
    }

    /// Each of them, to crash and restart.
    pub fn members_mut(&mut self) -> &mut [Mongodb] {
        &mut self.0
    }

    /// Which of them takes writes now, if one does.
    pub fn primary(&self) -> Option<usize> {
        self.0.iter().position(|member| member.is("isWritablePrimary"))
    }

    /// Waits for a primary.
    ///
    /// # Errors
    /// If there is none within a minute.
    pub fn elected(&self) -> io::Result<usize> {
        self.until("a primary", || self.primary())
    }

    /// Makes the primary step down, and waits for another. One whose followers are too far behind refuses, and is asked
    /// again.
    ///
    /// # Errors
    /// If it does not, or none follows within a minute.
    pub fn step_down(&self) -> io::Result<usize> {
        let command = fields([
            ("replSetStepDown", 20.into()),
            ("secondaryCatchUpPeriodSecs", 10.into()),
            ("$db", "admin".into()),
        ]);
        let before = self.until("a primary that steps down", || {
            let before = self.primary()?;
            let answer = wire::ask(self.0[before].address(), &command, PATIENCE).ok()?;
            (answer.get("ok").and_then(Value::number) == Some(1)).then_some(before)
        })?;
        self.until("another primary", || self.primary().filter(|after| *after != before))
    }

    #[expect(clippy::disallowed_methods, reason = "servers are waited for where there may be no runtime")]
    fn until<T>(&self, what: &str, look: impl Fn() -> Option<T>) -> io::Result<T> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(seen) = look() {
                return Ok(seen);
            }
            if Instant::now() > end {
                let logs = self.0.iter().map(|member| member.log()).collect::<Vec<_>>().join("\n");
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("the set did not come to {what}:\n{logs}"),
                ));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Mongodb {
    fn is(&self, role: &str) -> bool {
        self.hello().is_ok_and(|hello| hello.get(role).is_some_and(Value::is_true))
    }
}
