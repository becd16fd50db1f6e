//! The scripts: our own text, put together from parts, sent by digest.
//!
//! A script does in one atomic act what a step needs; none of them is ever run half. The order of commands within one
//! matters where memory is full: the first write decides whether the rest is allowed, so what must work on a full
//! server (renew, release) begins with a command that only frees or shortens.

use std::sync::LazyLock;

use redis::Cmd;

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
    LOCK = "name" "lock" "fence" "win" "clock" "line" "state" "lock_busy";
    /// Acquires shared.
    SHARE = "name" "tell" "fence" "share" "clock" "line" "state" "share_busy";
    /// Acquires permits.
    PERMITS = "name" "tell" "insist" "fence" "clock" "line" "state" "permits";
    /// Acquires permits of a semaphore that only counts.
    COUNT = "name" "tell" "insist" "fence" "clock" "line" "state" "count";
    /// Releases.
    UNLOCK = "name" "tell" "unlock" "insist" "clock" "line" "wake" "state" "remove" "unlock_any";
    /// Renews many.
    RENEW = "renew";
    /// Writes hold counts.
    RECOUNT = "name" "tell" "insist" "recount";
    /// Raises a fence.
    RAISE = "name" "raise";
    /// Steps on a latch.
    LATCH = "name" "tell" "insist" "clock" "line" "state" "latch";
    /// Sets a rate.
    RATE_SET = "name" "insist" "clock" "line" "state" "rate" "rate_set";
    /// Takes permits of a rate.
    RATE_TAKE = "name" "insist" "clock" "line" "state" "rate" "rate_take";
    /// Reads or removes a rate.
    RATE_READ = "name" "insist" "clock" "line" "state" "rate" "rate_read";
    /// Shows everything about a name.
    LOOK = "name" "clock" "line" "state" "look";
    /// Takes an acquisition out by force.
    BREAK = "name" "tell" "insist" "fence" "clock" "line" "wake" "state" "remove" "break";
    /// Notes one who waits.
    STANDS = "name" "insist" "clock" "stands";
    /// Writes a cell.
    CELL_WRITE = "cell_write";
    /// Reads cells in order.
    CELL_LIST = "cell_list";
}

impl Script {
    fn new(parts: &[&str]) -> Self {
        let text = parts.concat();
        #[cfg(feature = "planted-bugs")]
        let text = crate::planted::text(text);
        // The crate's own digest of a script is the one Redis computes.
        let sha = redis::Script::new(&text).get_hash().to_owned();
        Self { text, sha }
    }

    /// The request that runs it where the server has it.
    pub(crate) fn by_digest(&self, fill: impl Fn(&mut Cmd)) -> Cmd {
        let mut command = roomy("EVALSHA");
        command.arg(&self.sha);
        fill(&mut command);
        command
    }

    /// The request that runs it anywhere.
    pub(crate) fn by_text(&self, fill: impl Fn(&mut Cmd)) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(&self.text);
        fill(&mut command);
        command
    }
}

/// A request with room for what most scripts are told: growing step by step costs more than all else about it.
fn roomy(verb: &str) -> Cmd {
    let mut command = Cmd::with_capacity(16, 256);
    command.arg(verb);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_can_be_told_both_ways() {
        for script in [&LOCK, &SHARE, &PERMITS, &COUNT, &UNLOCK, &RENEW, &RECOUNT, &LATCH, &BREAK] {
            assert!(script.text.matches("call(verb").count() <= 1, "{}", script.text);
        }
    }
}
