//! What a server says about itself: `INFO`, and the settings that only `CONFIG GET` shows.
//!
//! Managed servers forbid or rename `CONFIG`, and users may lack the right to either. Whatever is not answered is left
//! out and remembered as unseen.

use std::collections::HashMap;

use futures_util::future::join_all;
use leasehold_core::backend::Finding;
use redis::Value;

use crate::{answer::text, connect::Node, error::Fault};

/// The settings that matter to locks.
const SETTINGS: [&str; 9] = [
    "appendfsync",
    "client-output-buffer-limit",
    "lua-time-limit",
    "maxclients",
    "maxmemory",
    "maxmemory-policy",
    "min-replicas-to-write",
    "notify-keyspace-events",
    "save",
];

/// What `INFO` also tells, or does not need telling.
const ELSEWHERE: [(&str, &str); 3] =
    [("maxclients", "maxclients"), ("maxmemory", "maxmemory"), ("maxmemory-policy", "maxmemory_policy")];

/// What is known of one server.
#[derive(Debug, Default)]
pub(super) struct Facts {
    info: Option<HashMap<String, String>>,
    settings: HashMap<String, String>,
}

impl Facts {
    /// Asks the server. Refusals leave gaps; only silence is an error.
    pub(super) async fn gather(node: &Node) -> Result<Self, Fault> {
        let settings = join_all(SETTINGS.iter().map(|name| {
            let mut command = redis::cmd("CONFIG");
            command.arg("GET").arg(*name);
            ask(node, command)
        }));
        let (info, settings) = tokio::join!(ask(node, redis::cmd("INFO")), settings);
        let mut facts =
            Self { info: info?.as_ref().and_then(text).map(|text| fields(&text)), ..Self::default() };
        for (name, answer) in SETTINGS.iter().zip(settings) {
            if let Some(value) = answer?.as_ref().and_then(setting) {
                facts.settings.insert((*name).to_owned(), value);
            }
        }
        Ok(facts)
    }

    /// What tells this run of the server from every other, if it says.
    pub(super) async fn run_id(node: &Node) -> Option<String> {
        let answer = ask(node, redis::cmd("INFO")).await.ok()??;
        fields(&text(&answer)?).remove("run_id")
    }

    /// A field of `INFO`.
    pub(super) fn info(&self, field: &str) -> Option<&str> {
        self.info.as_ref()?.get(field).map(String::as_str)
    }

    /// A field of `INFO` that is a number.
    pub(super) fn number(&self, field: &str) -> Option<u64> {
        self.info(field)?.parse().ok()
    }

    /// A setting, from wherever it is told.
    pub(super) fn setting(&self, name: &str) -> Option<&str> {
        let known = self.settings.get(name).map(String::as_str);
        known.or_else(|| self.info(ELSEWHERE.iter().find(|(setting, _)| *setting == name)?.1))
    }

    /// A setting that is a number.
    pub(super) fn count(&self, name: &str) -> Option<u64> {
        self.setting(name)?.parse().ok()
    }

    /// What could not be seen, in one note.
    pub(super) fn unseen(&self) -> Option<Finding> {
        let mut hidden: Vec<&str> =
            SETTINGS.into_iter().filter(|name| self.setting(name).is_none()).collect();
        let mut rights = vec!["+config|get"];
        if self.info.is_none() {
            hidden.insert(0, "INFO (version, role, replicas, memory)");
            rights.insert(0, "+info");
        }
        if hidden.is_empty() {
            return None;
        }
        let what = format!("the server does not show everything; not checked: {}", hidden.join(", "));
        let remedy = format!(
            "look them up where the server is managed, or let the user that runs doctor see them ({})",
            rights.join(" ")
        );
        Some(
            Finding::note("not-checked", what)
                .because("a setting that breaks locks may hide there")
                .remedy(remedy),
        )
    }

    #[cfg(test)]
    pub(super) fn of(info: &[(&str, &str)], settings: &[(&str, &str)]) -> Self {
        let owned = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        Self { info: Some(owned(info)), settings: owned(settings) }
    }

    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self::default()
    }
}

/// The answer, or nothing if the server refuses to say.
async fn ask(node: &Node, command: redis::Cmd) -> Result<Option<Value>, Fault> {
    match node.wire.call(command).await {
        Ok(value) => Ok(Some(value)),
        Err(Fault::Refused(_)) => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// Lines of `field:value`.
fn fields(text: &str) -> HashMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(field, value)| (field.to_owned(), value.trim_end().to_owned())).collect()
}

/// The one value of a `CONFIG GET`; a setting the server does not have has none.
fn setting(answer: &Value) -> Option<String> {
    match answer {
        Value::Map(pairs) => text(&pairs.first()?.1),
        Value::Array(words) => text(words.get(1)?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_is_read_line_by_line() {
        let fields = fields("# Server\r\nredis_version:7.0.15\r\nexecutable:/a:b\r\n\r\n");
        assert_eq!(fields["redis_version"], "7.0.15");
        assert_eq!(fields["executable"], "/a:b");
        assert_eq!(fields.len(), 2);
    }

    #[test]
    fn what_info_tells_is_not_missed_in_the_settings() {
        let facts = Facts::of(&[("maxmemory", "7"), ("maxmemory_policy", "x"), ("maxclients", "9")], &[]);
        let note = facts.unseen().unwrap();
        assert!(note.what.contains("appendfsync") && !note.what.contains("maxmemory"), "{}", note.what);
        assert!(Facts::none().unseen().unwrap().what.contains("INFO"));
    }
}
