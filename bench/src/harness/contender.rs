//! One of those that are compared.

use std::path::PathBuf;

/// A program to run, and what it is called on the page.
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    pub(crate) name: String,
    /// Its language and release.
    pub(crate) about: String,
    pub(crate) waits: Waits,
    /// The store that it is for as another library; empty if it is none.
    pub(crate) store: String,
    pub(crate) program: PathBuf,
    /// Before what every program is given, and after it.
    pub(crate) before: Vec<String>,
    pub(crate) after: Vec<String>,
    pub(crate) is_ours: bool,
}

/// What it does while a lock is held by somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Waits {
    /// It is woken.
    Wakes,
    /// It looks again and again.
    Polls,
}

impl Contender {
    /// Leasehold, as its locks are by default.
    pub(crate) fn ours() -> Self {
        Self::own("leasehold", "worker", &[])
    }

    /// Leasehold, asked for in another way.
    pub(crate) fn variant(name: &str, variant: &str) -> Self {
        Self::own(name, "worker", &[variant])
    }

    /// The same commands without a library.
    pub(crate) fn bare(name: &str, variant: &str, connections: &str) -> Self {
        Self { is_ours: false, ..Self::own(name, "bare", &[variant, connections]) }
    }

    /// On another store than Redis: what a lock needs there, by the client library alone.
    pub(crate) fn direct() -> Self {
        Self { is_ours: false, ..Self::own("bare requests", "direct", &[]) }
    }

    /// PostgreSQL's own locks.
    pub(crate) fn advisory() -> Self {
        Self { is_ours: false, ..Self::own("pg_advisory_lock", "advisory", &[]) }
    }

    /// A semaphore of one process.
    pub(crate) fn local() -> Self {
        Self { is_ours: false, ..Self::own("local semaphore", "local", &[]) }
    }

    /// Whether this is another library.
    pub(crate) fn is_peer(&self) -> bool {
        !self.store.is_empty()
    }

    fn own(name: &str, kind: &str, after: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            about: "Rust, this commit".to_owned(),
            waits: Waits::Wakes,
            store: String::new(),
            // A program that runs has a path, unless the system hides it; then starting it says so.
            program: std::env::current_exe().unwrap_or_default(),
            before: vec![kind.to_owned()],
            after: after.iter().map(|word| (*word).to_owned()).collect(),
            is_ours: true,
        }
    }
}
