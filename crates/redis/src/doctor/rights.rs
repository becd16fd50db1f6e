//! What our user may do on the server, and the least it must be allowed.
//!
//! Rights are found out by using them, which works on every version, for every user, and also shows commands that were
//! renamed away. Commands are tried on a key that holds a text for a few seconds: those for texts change nothing that
//! matters, all others are refused because of its type, and a refusal for that reason is as good as a yes.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use leasehold_core::{ClientId, Operation, Result, backend::Finding};
use redis::{Cmd, ServerError};

use super::Terms;
use crate::{
    bell::Ring,
    connect::{Node, Topology},
    error::Fault,
    names,
};

/// Where a command is tried.
const PROBE: &str = "leasehold-doctor-rights";

/// Who everybody is that does not say.
const DEFAULT: &str = "default";

/// How long the key lives that commands are tried on, in milliseconds.
const LIFE: &str = "10000";

/// When a command is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Always,
    /// In a database other than the first.
    Numbered,
    /// Where the primary is found among several servers.
    Found,
    /// Where replicas confirm grants.
    Confirmed,
    Clustered,
}

/// Every command that locks need, in scripts or outside of them, when they do, and arguments to try it with: `K` stands
/// for the key with a text, `N` for one that does not exist, `C` for a channel. Deleting comes last.
const COMMANDS: [(&str, When, &[&str]); 52] = [
    ("asking", When::Clustered, &[]),
    ("cluster|slots", When::Clustered, &[]),
    ("decr", When::Always, &["K"]),
    ("decrby", When::Always, &["K", "1"]),
    ("eval", When::Always, &["return 1", "0"]),
    ("evalsha", When::Always, &["0000000000000000000000000000000000000000", "0"]),
    ("exists", When::Always, &["K"]),
    ("get", When::Always, &["K"]),
    ("hdel", When::Always, &["K", "f"]),
    ("hexists", When::Always, &["K", "f"]),
    ("hget", When::Always, &["K", "f"]),
    ("hgetall", When::Always, &["K"]),
    ("hlen", When::Always, &["K"]),
    ("hmget", When::Always, &["K", "f"]),
    ("hscan", When::Always, &["K", "0"]),
    ("hset", When::Always, &["K", "f", "v"]),
    ("incrby", When::Always, &["K", "1"]),
    ("lindex", When::Always, &["K", "0"]),
    ("llen", When::Always, &["K"]),
    ("lpop", When::Always, &["K"]),
    ("lpos", When::Always, &["K", "v"]),
    ("lrange", When::Always, &["K", "0", "0"]),
    ("lrem", When::Always, &["K", "0", "v"]),
    ("persist", When::Always, &["N"]),
    ("pexpire", When::Always, &["K", LIFE]),
    ("ping", When::Always, &[]),
    ("pttl", When::Always, &["K"]),
    ("publish", When::Always, &["C", "0"]),
    ("pubsub|shardnumsub", When::Clustered, &["C"]),
    ("role", When::Found, &[]),
    ("rpush", When::Always, &["K", "v"]),
    ("scan", When::Always, &["0", "COUNT", "1"]),
    ("select", When::Numbered, &[]),
    ("set", When::Always, &["K", "x", "XX", "PX", LIFE]),
    ("spublish", When::Clustered, &["C", "0"]),
    ("ssubscribe", When::Clustered, &[]),
    ("strlen", When::Always, &["K"]),
    ("subscribe", When::Always, &[]),
    ("sunsubscribe", When::Clustered, &[]),
    ("time", When::Always, &[]),
    ("type", When::Always, &["K"]),
    ("unsubscribe", When::Always, &[]),
    ("wait", When::Confirmed, &["0", "1"]),
    ("zadd", When::Always, &["K", "XX", "1", "v"]),
    ("zcard", When::Always, &["K"]),
    ("zrange", When::Always, &["K", "0", "0"]),
    ("zrangebylex", When::Always, &["K", "-", "+"]),
    ("zrangebyscore", When::Always, &["K", "0", "0"]),
    ("zrem", When::Always, &["K", "v"]),
    ("zremrangebyrank", When::Always, &["K", "0", "0"]),
    ("zscore", When::Always, &["K", "v"]),
    ("del", When::Always, &["K"]),
];

/// Not tried on the line for requests, where they would change what its answers mean; subscribing is tried where
/// messages are heard.
const UNTRIED: [&str; 6] = ["asking", "select", "ssubscribe", "subscribe", "sunsubscribe", "unsubscribe"];

impl When {
    fn is_so(self, terms: &Terms) -> bool {
        match self {
            Self::Always => true,
            Self::Numbered => terms.db > 0,
            Self::Found => terms.is_found,
            Self::Confirmed => terms.wait_replicas > 0,
            Self::Clustered => terms.is_cluster,
        }
    }
}

/// What a user must be allowed so that it can lock names that begin with a prefix, and nothing more.
#[derive(Clone, Debug)]
struct Rights<'a> {
    prefix: &'a str,
    terms: &'a Terms,
}

impl Rights<'_> {
    fn commands(&self) -> BTreeSet<&'static str> {
        let needed = COMMANDS.iter().filter(|(_, when, _)| when.is_so(self.terms));
        needed.map(|(command, _, _)| *command).collect()
    }

    /// Keys: the names, what Redisson puts beside them, and what we do.
    fn keys(&self) -> Vec<String> {
        if self.prefix.is_empty() {
            return vec!["*".to_owned()];
        }
        let prefix = escaped(self.prefix);
        let own = [format!("{prefix}*"), format!("{{{prefix}*")];
        own.into_iter().chain(["redisson_*".to_owned(), "leasehold_*".to_owned()]).collect()
    }

    /// The line that gives a user these rights and takes all others; its password stays as it is. The user that
    /// everybody is by default keeps what it has: others may need it, and another one is better.
    fn line(&self, user: &str) -> String {
        let who = if user == DEFAULT {
            "leasehold on >PASSWORD".to_owned()
        } else {
            format!("{} on", quoted(user))
        };
        let mut words = vec![format!("ACL SETUSER {who} resetkeys")];
        words.extend(self.keys().iter().map(|pattern| quoted(&format!("~{pattern}"))));
        words.push("resetchannels &redisson_* &leasehold_* -@all".to_owned());
        words.extend(self.commands().iter().map(|command| format!("+{command}")));
        words.join(" ")
    }
}

/// What a try came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Allowed,
    /// The user may not run it at all.
    Command,
    /// The user may not touch this key.
    Key,
    /// The user may not use this channel.
    Channel,
    /// The server has no such command.
    Unknown,
}

/// What is missing.
#[derive(Debug, Default, PartialEq, Eq)]
struct Missing {
    commands: BTreeSet<&'static str>,
    keys: BTreeSet<String>,
    channels: BTreeSet<String>,
    unknown: BTreeSet<&'static str>,
    /// Why messages cannot be heard, if rights are not the reason.
    deaf: Option<String>,
}

/// Tries everything that locks need.
pub(super) async fn examine(topology: &dyn Topology, terms: &Terms, prefix: &str) -> Result<Vec<Finding>> {
    let missing = try_all(topology, terms, prefix).await;
    let missing = missing.map_err(|fault| fault.into_error(Operation::Inspect))?;
    let user = terms.username.as_deref().unwrap_or(DEFAULT);
    Ok(missing.findings(user, &Rights { prefix, terms }.line(user)))
}

async fn try_all(topology: &dyn Topology, terms: &Terms, prefix: &str) -> Result<Missing, Fault> {
    let name = [prefix, PROBE].concat();
    let node = topology.node(&name);
    let mut missing = Missing::default();
    let set = attempt(&node, &["set", &name, "x", "PX", LIFE]).await?;
    missing.note("set", set, &name);
    for (command, when, arguments) in COMMANDS {
        // Without a text in the way these would make keys that nobody removes.
        let makes = matches!(command, "decr" | "decrby" | "hset" | "incrby" | "rpush");
        if UNTRIED.contains(&command) || !when.is_so(terms) || (makes && set != Verdict::Allowed) {
            continue;
        }
        let words: Vec<String> = arguments.iter().map(|word| filled(word, &name)).collect();
        let words: Vec<&str> = command.split('|').chain(words.iter().map(String::as_str)).collect();
        let place = if command.ends_with("publish") { names::lock_channel(&name) } else { name.clone() };
        missing.note(command, attempt(&node, &words).await?, &place);
    }
    try_beside(&node, &name, &mut missing).await?;
    try_listening(topology, &name, &mut missing).await;
    Ok(missing)
}

/// The keys beside a name, of which each may be forbidden by itself.
async fn try_beside(node: &Node, name: &str, missing: &mut Missing) -> Result<(), Fault> {
    let tag = names::tag(name);
    let keys =
        [format!("leasehold_fence:{tag}"), format!("redisson_lock_queue:{tag}"), format!("{tag}:timeout")];
    for key in keys {
        let verdict = attempt(node, &["exists", &key]).await?;
        missing.note("exists", verdict, &key);
    }
    Ok(())
}

/// Listens for a moment where wake-ups are heard.
async fn try_listening(topology: &dyn Topology, name: &str, missing: &mut Missing) {
    let channels = [names::lock_channel(name), names::semaphore_channel(name), names::latch_channel(name)];
    let bells = channels.map(|channel| {
        let mut bell = topology.listen(name, vec![channel.clone()]);
        async move { (channel, bell.rung().await) }
    });
    let heard = join_all(bells).await;
    if heard.iter().all(|(_, heard)| heard.is_ok()) {
        // By itself: where this one is refused, the others are none the worse.
        let channel = names::breaks(ClientId::random());
        let heard = topology.hear(channel.clone()).rung().await;
        missing.note_heard(&channel, heard);
    }
    for (channel, heard) in heard {
        missing.note_heard(&channel, heard);
    }
}

async fn attempt(node: &Node, words: &[&str]) -> Result<Verdict, Fault> {
    let mut command = Cmd::new();
    for word in words {
        command.arg(*word);
    }
    match node.wire.call(command).await {
        Ok(_) => Ok(Verdict::Allowed),
        Err(Fault::Refused(refusal)) => Ok(refused(&refusal)),
        Err(fault) => Err(fault),
    }
}

fn refused(refusal: &ServerError) -> Verdict {
    verdict(refusal.code(), refusal.details().unwrap_or_default())
}

/// Servers tell in words what exactly is not allowed; the words have changed, these have not.
fn verdict(code: &str, details: &str) -> Verdict {
    match code {
        "NOPERM" if details.contains("channel") => Verdict::Channel,
        "NOPERM" if details.contains("run the") => Verdict::Command,
        "NOPERM" => Verdict::Key,
        "ERR" if details.starts_with("unknown command") => Verdict::Unknown,
        _ => Verdict::Allowed,
    }
}

impl Missing {
    fn note(&mut self, command: &'static str, verdict: Verdict, place: &str) {
        match verdict {
            Verdict::Allowed => {}
            Verdict::Command => drop(self.commands.insert(command)),
            Verdict::Unknown => drop(self.unknown.insert(command)),
            Verdict::Key => drop(self.keys.insert(place.to_owned())),
            Verdict::Channel => drop(self.channels.insert(place.to_owned())),
        }
    }

    /// What came of listening on a channel.
    fn note_heard(&mut self, channel: &str, heard: Result<Ring, Fault>) {
        match heard {
            Ok(_) => {}
            Err(Fault::NotSent(error)) if error.code() == Some("NOPERM") => {
                self.note("subscribe", verdict("NOPERM", error.detail().unwrap_or_default()), channel);
            }
            Err(Fault::NotSent(error)) if error.to_string().contains("unknown command") => {
                self.unknown.insert("subscribe");
            }
            Err(fault) => self.deaf = Some(fault.into_error(Operation::Connect).to_string()),
        }
    }

    fn findings(&self, user: &str, line: &str) -> Vec<Finding> {
        let commands = (!self.unknown.is_empty()).then(|| {
            let what = format!("the server does not know these commands: {}", joined(&self.unknown));
            let finding =
                Finding::danger("commands", what).because("locks need them; without them requests fail");
            finding.remedy("remove their rename-command lines from the server's configuration")
        });
        let messages = self.deaf.as_ref().map(|why| {
            let finding = Finding::danger("messages", format!("messages cannot be heard: {why}"));
            finding
                .because(
                    "nobody who waits for a lock is woken; they look again by themselves, every few seconds",
                )
                .remedy("each client needs a second connection for messages; see that it can have one")
        });
        let remedy = match user {
            DEFAULT => {
                "make a user that may do what locks need, and nothing else, and name it in the store URL"
            }
            _ => "give the user what locks need, and nothing else; its password stays as it is",
        };
        let rights = match self.told(user) {
            None => {
                Finding::good("permissions", format!("the user {user:?} may do everything that locks need"))
            }
            Some(what) => Finding::danger("permissions", what)
                .because("requests that need them are refused")
                .remedy(remedy),
        };
        commands.into_iter().chain(messages).chain([rights.command(line)]).collect()
    }

    fn told(&self, user: &str) -> Option<String> {
        let some = |places: &BTreeSet<String>| joined(&places.iter().take(2).cloned().collect());
        let mut parts = Vec::new();
        if !self.commands.is_empty() {
            parts.push(format!("run {}", joined(&self.commands)));
        }
        if !self.keys.is_empty() {
            parts.push(format!("touch keys such as {}", some(&self.keys)));
        }
        if !self.channels.is_empty() {
            parts.push(format!("use channels such as {}", some(&self.channels)));
        }
        (!parts.is_empty()).then(|| format!("the user {user:?} may not {}", parts.join("; nor ")))
    }
}

fn joined<S: AsRef<str>>(words: &BTreeSet<S>) -> String {
    words.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(", ")
}

fn filled(word: &str, name: &str) -> String {
    match word {
        "K" => name.to_owned(),
        "N" => format!("{name}-none"),
        "C" => names::lock_channel(name),
        other => other.to_owned(),
    }
}

/// A text that a pattern takes for itself.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A word as redis-cli reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| !c.is_whitespace() && !matches!(c, '"' | '\'' | '\\');
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    /// The commands in calls that begin like this, in files below this folder.
    fn used(folder: &Path, extension: &str, beginnings: &[&str], found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // What only doctor asks is not needed by locks.
                if !path.ends_with("doctor") {
                    used(&path, extension, beginnings, found);
                }
                continue;
            }
            // Nor is what only planted bugs ask.
            if path.extension().is_none_or(|found| found != extension) || path.ends_with("planted.rs") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            for beginning in beginnings {
                for rest in text.split(beginning).skip(1) {
                    let word: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
                    found.insert(word.to_lowercase());
                }
            }
        }
    }

    fn sources() -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut found = BTreeSet::new();
        used(&folder, "lua", &["redis.call('", "redis.pcall('"], &mut found);
        used(&folder, "rs", &["redis::cmd(\"", ".cmd(\"", "roomy(\""], &mut found);
        assert!(found.len() > 30, "{found:?}");
        found
    }

    /// Without what of it is meant.
    fn bare(command: &str) -> &str {
        command.split('|').next().unwrap()
    }

    #[test]
    fn every_command_that_scripts_or_the_store_use_is_in_the_list() {
        let listed = COMMANDS.map(|(command, _, _)| bare(command).to_owned());
        // Sentinels have users of their own, and only a planted bug loads scripts.
        let others = ["sentinel", "script"].map(str::to_owned);
        let missing: Vec<_> =
            sources().into_iter().filter(|word| !others.contains(word) && !listed.contains(word)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn nothing_is_in_the_list_that_is_not_used() {
        let mut needed = sources();
        // Told to scripts as an argument, sent as the database is chosen, or named where messages are heard.
        let heard = ["subscribe", "unsubscribe", "ssubscribe", "sunsubscribe"];
        needed.extend(["publish", "spublish", "select"].into_iter().chain(heard).map(str::to_owned));
        let needless: Vec<_> = COMMANDS
            .iter()
            .map(|(command, _, _)| bare(command))
            .filter(|word| !needed.contains(*word))
            .collect();
        assert!(needless.is_empty(), "{needless:?}");
    }

    #[test]
    fn the_line_names_what_is_needed_and_nothing_else() {
        let alone = Terms { is_cluster: false, is_found: false, username: None, db: 0, wait_replicas: 0 };
        let line = Rights { prefix: "", terms: &alone }.line("app");
        assert!(
            line.starts_with(
                "ACL SETUSER app on resetkeys ~* resetchannels &redisson_* &leasehold_* -@all +"
            ),
            "{line}"
        );
        let default = Rights { prefix: "", terms: &alone }.line(DEFAULT);
        assert!(default.starts_with("ACL SETUSER leasehold on >PASSWORD resetkeys ~* "), "{default}");
        for word in ["select", "role", "wait", "asking", "cluster", "spublish"] {
            assert!(!line.contains(&format!("+{word}")), "{line}");
        }
        let more = Terms { is_cluster: true, is_found: true, db: 2, wait_replicas: 1, ..alone };
        let line = Rights { prefix: "my app[1]:", terms: &more }.line("app");
        assert!(
            line.contains(r#""~my app\\[1\\]:*" "~{my app\\[1\\]:*" ~redisson_* ~leasehold_*"#),
            "{line}"
        );
        for word in ["select", "role", "wait", "asking", "cluster|slots", "spublish"] {
            assert!(line.contains(&format!(" +{word}")), "{line}");
        }
    }

    #[test]
    fn refusals_are_told_apart_in_old_words_and_new() {
        for (code, details, expected) in [
            (
                "NOPERM",
                "this user has no permissions to run the 'get' command or its subcommand",
                Verdict::Command,
            ),
            ("NOPERM", "User eve has no permissions to run the 'get' command", Verdict::Command),
            (
                "NOPERM",
                "this user has no permissions to access one of the keys used as arguments",
                Verdict::Key,
            ),
            ("NOPERM", "No permissions to access a key", Verdict::Key),
            ("NOPERM", "No permissions to access a channel", Verdict::Channel),
            ("ERR", "unknown command 'get', with args beginning with: 'k' ", Verdict::Unknown),
            ("WRONGTYPE", "Operation against a key holding the wrong kind of value", Verdict::Allowed),
            ("ERR", "value is not an integer or out of range", Verdict::Allowed),
            ("NOSCRIPT", "No matching script. Please use EVAL.", Verdict::Allowed),
        ] {
            assert_eq!(verdict(code, details), expected, "{details}");
        }
    }
}
