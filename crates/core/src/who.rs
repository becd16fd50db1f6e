//! Who is behind a client: what a busy answer, `ls` and the page show of a holder.
//!
//! This is information for people. Nothing decides by it: two processes may well have the same host and program,
//! and a name can be forged. Identity is [`ClientId`].

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::id::ClientId;

/// The process behind a client, as it described itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Who {
    /// The client's random identity.
    pub client: ClientId,
    /// Name of the machine.
    pub host: Arc<str>,
    /// Process id on that machine.
    pub pid: u32,
    /// The user the process runs as.
    pub user: Arc<str>,
    /// The program's file name, or what the client was told to call itself.
    pub program: Arc<str>,
}

impl Who {
    /// Describes this process, under a fresh client id.
    pub fn here() -> Self {
        Self {
            client: ClientId::random(),
            host: system::host().into(),
            pid: std::process::id(),
            user: system::user().into(),
            program: program().into(),
        }
    }

    /// The same process under another program name, such as the command that `run` starts.
    #[must_use]
    pub fn with_program(mut self, program: &str) -> Self {
        self.program = program.into();
        self
    }
}

/// `backup (pid 4711 on web-3, user deploy)`, as busy answers print it.
impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {} on {}, user {})", self.program, self.pid, self.host, self.user)
    }
}

fn program() -> String {
    let path = std::env::args_os().next().map(std::path::PathBuf::from);
    let name = path.as_deref().and_then(std::path::Path::file_name);
    name.map_or_else(|| "unknown".to_owned(), |name| name.to_string_lossy().into_owned())
}

#[cfg(unix)]
mod system {
    pub(super) fn host() -> String {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }

    /// By the user id, not by the environment: that is what the process may do, whatever it calls itself.
    pub(super) fn user() -> String {
        let uid = rustix::process::geteuid().as_raw();
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        named(&users, uid).or_else(|| std::env::var("USER").ok()).unwrap_or_else(|| format!("uid {uid}"))
    }

    fn named(users: &str, uid: u32) -> Option<String> {
        users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
        })
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn users_are_named_by_their_id() {
            let users =
                "root:x:0:0:root:/root:/bin/sh\n+::::::\nodd\ndeploy:x:1001:1001::/home/deploy:/bin/sh\n";
            assert_eq!(super::named(users, 1001).as_deref(), Some("deploy"));
            assert_eq!(super::named(users, 7), None);
        }
    }
}

#[cfg(not(unix))]
mod system {
    pub(super) fn host() -> String {
        std::env::var("COMPUTERNAME").unwrap_or_else(|_| "unknown".to_owned())
    }

    pub(super) fn user() -> String {
        std::env::var("USERNAME").unwrap_or_else(|_| "unknown".to_owned())
    }
}
