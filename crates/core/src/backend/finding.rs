//! What an examination of a store found: each finding is a fact, why it matters to locks, and what to do about it.
//!
//! Findings are for people first: whole sentences, lower case, no full stop, no secrets. Programs go by the severity
//! and by the topic, which never changes its meaning.

use std::{borrow::Cow, fmt, net::IpAddr};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// As it should be.
    Good,
    /// Worth knowing; nothing has to be done.
    Note,
    /// A lock can fail when something else fails: a restart, a failover, a full disk.
    Warning,
    /// A lock can fail, or does not work at all, with nothing else going wrong.
    Danger,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Danger => "danger",
        })
    }
}

/// One thing found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "a finding is to be told"]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// What it is about, in kebab case, such as `clock-offset`. A promise to programs.
    pub topic: &'static str,
    /// What was found, in a sentence.
    pub what: Cow<'static, str>,
    /// Why it matters to locks.
    pub why: Option<Cow<'static, str>>,
    /// What to do about it.
    pub remedy: Option<Cow<'static, str>>,
    /// What to type for that: one line, to be copied whole. Never carries a password.
    pub command: Option<String>,
}

impl Finding {
    /// A finding; the rest is added to it.
    pub fn new(severity: Severity, topic: &'static str, what: impl Into<Cow<'static, str>>) -> Self {
        Self { severity, topic, what: what.into(), why: None, remedy: None, command: None }
    }

    /// Something as it should be.
    pub fn good(topic: &'static str, what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Severity::Good, topic, what)
    }

    /// Something worth knowing.
    pub fn note(topic: &'static str, what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Severity::Note, topic, what)
    }

    /// Something that makes another failure worse.
    pub fn warning(topic: &'static str, what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Severity::Warning, topic, what)
    }

    /// Something that breaks locks by itself.
    pub fn danger(topic: &'static str, what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Severity::Danger, topic, what)
    }

    /// What there is to say of connections that are not encrypted: nothing while all these hosts are this machine.
    pub fn unencrypted<'h>(hosts: impl IntoIterator<Item = &'h str>) -> Option<Self> {
        let far = hosts.into_iter().find(|host| !is_local(host))?;
        let what = format!("what is said to {far} is not encrypted");
        Some(
            Self::warning("encryption", what).because(
                "whoever is in between can read passwords and change what we hear: who holds a lock",
            ),
        )
    }

    /// Why it matters to locks.
    pub fn because(mut self, why: impl Into<Cow<'static, str>>) -> Self {
        self.why = Some(why.into());
        self
    }

    /// What to do about it.
    pub fn remedy(mut self, remedy: impl Into<Cow<'static, str>>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// What to type, as one line.
    pub fn command(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }
}

/// Whether a host is this machine: by its name, a loopback address, or the path of a socket.
fn is_local(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || host.starts_with('/') || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_leaves_the_machine_has_to_be_encrypted() {
        assert_eq!(Finding::unencrypted(["localhost", "127.0.0.2", "::1", "[::1]", "/run/a.sock"]), None);
        for far in ["db.example", "10.0.0.7", "fe80::1", "localhost.example"] {
            let finding = Finding::unencrypted(["localhost", far]).expect("it is another machine");
            assert_eq!((finding.severity, finding.topic), (Severity::Warning, "encryption"), "{far}");
        }
    }

    #[test]
    fn the_worst_is_the_greatest() {
        let order = [Severity::Good, Severity::Note, Severity::Warning, Severity::Danger];
        assert!(order.is_sorted());
        assert_eq!(order.iter().max(), Some(&Severity::Danger));
    }
}
