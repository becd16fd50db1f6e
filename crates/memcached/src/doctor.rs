//! The examination of a memcached: how likely is it to forget a lock?
//!
//! What the server says of itself (`stats`) is judged by pure functions, so that servers nobody has at hand are judged
//! right, too. It changes nothing.

use std::collections::HashMap;

use leasehold_core::{Result, backend::Finding};

use crate::{error::Fault, pool::Pool};

/// What the server says of itself, by name.
type Stats = HashMap<String, String>;

pub(crate) async fn examine(pool: &Pool) -> Result<Vec<Finding>> {
    let connection = pool.fresh().await?;
    let (connection, general) = connection.list("stats").await.map_err(Fault::of_read)?;
    let (connection, settings) = connection.list("stats settings").await.map_err(Fault::of_read)?;
    pool.give_back(connection);
    let mut findings = judge(&read(&general), &read(&settings));
    findings.extend(Finding::unencrypted([pool.host()]).map(|finding| {
        finding.remedy("keep it within a network that others cannot hear: there is no TLS here")
    }));
    Ok(findings)
}

fn read(lines: &[String]) -> Stats {
    let pair = |line: &String| {
        let (name, value) = line.strip_prefix("STAT ")?.split_once(' ')?;
        Some((name.to_owned(), value.to_owned()))
    };
    lines.iter().filter_map(pair).collect()
}

fn judge(general: &Stats, settings: &Stats) -> Vec<Finding> {
    let number = |stats: &Stats, name: &str| stats.get(name).and_then(|value| value.parse::<u64>().ok());
    let yes = |name: &str| settings.get(name).map(|value| matches!(value.as_str(), "yes" | "on"));
    let mut findings = vec![cache(), version(general.get("version").map_or("", String::as_str))];
    findings.extend(yes("cas_enabled").map(versions));
    let evicted = number(general, "evictions");
    findings.extend(evicted.map(|evicted| evictions(evicted, yes("evictions") == Some(true))));
    if let (Some(used), Some(limit)) = (number(general, "bytes"), number(general, "limit_maxbytes")) {
        findings.push(room(used, limit));
    }
    findings.extend(yes("flush_enabled").map(flushing));
    findings
        .extend(yes("dump_enabled").zip(yes("lru_crawler")).map(|(dump, crawler)| listing(dump && crawler)));
    findings
}

fn cache() -> Finding {
    Finding::note("best-effort", "memcached is a cache, and its locks are best effort")
        .because("it forgets what it has no room for, and everything when it is restarted: two may hold one lock then")
        .remedy("use it where doing work twice does no harm; use another store where it does")
}

fn version(text: &str) -> Finding {
    const TOPIC: &str = "version";
    let mut numbers = text.split('.').map(|part| part.parse::<u32>().unwrap_or_default());
    let found = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    if found >= (1, 6) {
        return Finding::good(TOPIC, format!("memcached {text} has the meta commands"));
    }
    Finding::danger(TOPIC, format!("memcached {text:?} is older than 1.6"))
        .because("locks need its meta commands")
        .remedy("upgrade it")
}

fn versions(enabled: bool) -> Finding {
    const TOPIC: &str = "compare-and-set";
    if enabled {
        return Finding::good(TOPIC, "items have versions, so a write goes only where it should");
    }
    Finding::danger(TOPIC, "items have no versions (-C)")
        .because("nothing can be changed by compare-and-set, and every lock would fail")
        .remedy("start memcached without -C")
}

fn evictions(evicted: u64, allowed: bool) -> Finding {
    const TOPIC: &str = "evictions";
    match (evicted, allowed) {
        (0, true) => Finding::note(TOPIC, "nothing has been evicted since it was started, but it may be")
            .because("an evicted lock is free for others while its holder works on")
            .remedy("give locks a memcached of their own, with room to spare"),
        (0, false) => Finding::good(TOPIC, "it refuses what it has no room for, and evicts nothing (-M)"),
        (evicted, _) => Finding::danger(TOPIC, format!("{evicted} items were evicted since it was started"))
            .because("locks are among what it evicts, and two may hold one then")
            .remedy("give locks a memcached of their own, with more memory (-m)"),
    }
}

fn room(used: u64, limit: u64) -> Finding {
    const TOPIC: &str = "memory";
    let what = format!("{} of {} MB are in use", used >> 20, limit >> 20);
    if used < limit / 10 * 7 {
        return Finding::good(TOPIC, what);
    }
    Finding::warning(TOPIC, what)
        .because("when it is full it evicts locks along with everything else, or refuses new ones")
        .remedy("give it more memory (-m)")
}

fn flushing(enabled: bool) -> Finding {
    const TOPIC: &str = "flush";
    if !enabled {
        return Finding::good(TOPIC, "nobody can flush it (-F)");
    }
    Finding::note(TOPIC, "whoever can reach it can flush it, and all locks with it")
        .remedy("start it with -F where nothing needs flush_all")
}

fn listing(enabled: bool) -> Finding {
    const TOPIC: &str = "listing";
    if enabled {
        return Finding::good(TOPIC, "names can be listed");
    }
    Finding::note(TOPIC, "names cannot be listed: the crawler or dumping is switched off")
        .because("locks work without; only listings do not")
}

#[cfg(test)]
mod tests {
    use leasehold_core::backend::Severity;

    use super::*;

    fn stats(text: &str) -> Stats {
        read(&text.split(';').map(|line| format!("STAT {line}")).collect::<Vec<_>>())
    }

    fn worst(general: &str, settings: &str) -> (Severity, &'static str) {
        let findings = judge(&stats(general), &stats(settings));
        findings.iter().map(|finding| (finding.severity, finding.topic)).max_by_key(|found| found.0).unwrap()
    }

    #[test]
    fn what_loses_locks_is_told() {
        let fine = "version 1.6.18;evictions 0;bytes 10;limit_maxbytes 100";
        let set = "cas_enabled yes;evictions on;flush_enabled yes;dump_enabled yes;lru_crawler yes";
        assert_eq!(worst(fine, set).0, Severity::Note);
        assert_eq!(worst("version 1.5.22", set), (Severity::Danger, "version"));
        assert_eq!(worst("version 1.6.0;evictions 7", set), (Severity::Danger, "evictions"));
        assert_eq!(worst("version 1.6.0;bytes 80;limit_maxbytes 100", set), (Severity::Warning, "memory"));
        assert_eq!(worst(fine, "cas_enabled no"), (Severity::Danger, "compare-and-set"));
    }
}
