//! The scripts: our own text, put together from parts, sent by digest.
//!
//! A script does in one atomic act what a step needs; none of them is ever run half. The order of commands within one
//! matters where memory is full: the first write decides whether the rest is allowed, so what must work on a full
//! server (renew, release) begins with a command that only frees or shortens.

use std::sync::LazyLock;

/// A script and its digest.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) text: String,
    pub(crate) sha: String,
}

macro_rules! scripts {
    ($($(#[$doc:meta])* $name:ident = $($part:literal)+;)*) => {$(
        $(#[$doc])*
        pub(crate) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(&[$(include_str!(concat!("scripts/", $part, ".lua"))),+]));
    )*};
}

scripts! {
    /// Acquires exclusively.
    LOCK = "name" "fence" "lock" "clock" "line" "state" "lock_busy";
    /// Acquires shared.
    SHARE = "name" "fence" "share" "clock" "line" "state" "share_busy";
    /// Acquires permits.
    PERMITS = "name" "fence" "clock" "line" "state" "permits";
    /// Releases.
    UNLOCK = "name" "unlock" "clock" "line" "wake" "state" "remove" "unlock_any";
    /// Renews many.
    RENEW = "renew";
    /// Writes hold counts.
    RECOUNT = "name" "recount";
    /// Steps on a latch.
    LATCH = "name" "clock" "line" "state" "latch";
    /// Shows everything about a name.
    LOOK = "name" "clock" "line" "state" "look";
    /// Takes an acquisition out by force.
    BREAK = "name" "fence" "clock" "line" "wake" "state" "remove" "break";
    /// Notes one who waits.
    STANDS = "name" "clock" "stands";
    /// Writes a cell.
    CELL_WRITE = "cell_write";
    /// Reads cells in order.
    CELL_LIST = "cell_list";
}

impl Script {
    fn new(parts: &[&str]) -> Self {
        let text = parts.concat();
        // The crate's own digest of a script is the one Redis computes.
        let sha = redis::Script::new(&text).get_hash().to_owned();
        Self { text, sha }
    }
}
