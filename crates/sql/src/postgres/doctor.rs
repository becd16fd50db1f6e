//! What an examination of a PostgreSQL finds.

use leasehold_core::{Result, backend::Finding};

use super::{PostgresDatabase, TABLES};
use crate::server::{Failure, url::encryption};

/// One row of facts, as text.
const FACTS: &str = "SELECT concat_ws('|',
    pg_is_in_recovery()::text,
    current_setting('default_transaction_read_only'),
    current_setting('fsync'),
    current_setting('synchronous_commit'),
    coalesce(nullif(current_setting('synchronous_standby_names'), ''), '-'),
    current_setting('full_page_writes'),
    current_setting('server_version_num'),
    has_table_privilege('leasehold_record', 'SELECT, INSERT, UPDATE, DELETE')::text,
    (SELECT count(*) FROM leasehold_record)::text,
    current_setting('statement_timeout'))";

pub(super) async fn examine(database: &PostgresDatabase) -> Result<Vec<Finding>> {
    let facts = database.script(FACTS).await.map_err(Failure::into_error)?.unwrap_or_default();
    let facts: Vec<&str> = facts.split('|').collect();
    let fact = |at: usize| facts.get(at).copied().unwrap_or_default();
    let mut findings =
        vec![writable(fact(0), fact(1)), durable(fact(2), fact(3), fact(5)), standbys(fact(4))];
    findings.push(rights(fact(7)));
    findings.extend(old(fact(6)));
    let hosts = database.config.hosts();
    findings.extend(encryption(database.config.common.tls, hosts.iter().map(String::as_str)));
    findings.push(Finding::note("rows", format!("the table of locks has {} rows", fact(8))));
    if fact(9) != "0" {
        let what = format!("statement_timeout is {}", fact(9));
        findings.push(
            Finding::note("statement-timeout", what)
                .because("a statement cut short is tried again by who waits"),
        );
    }
    Ok(findings)
}

fn writable(recovering: &str, read_only: &str) -> Finding {
    if recovering == "true" || read_only == "on" {
        return Finding::danger(
            "read-only",
            "the server takes no writes: it is a standby, or read-only by its settings",
        )
        .because("no lock can be acquired here")
        .remedy("connect to the primary, with several hosts and target_session_attrs=read-write");
    }
    Finding::good("read-only", "the server takes writes")
}

fn durable(fsync: &str, synchronous: &str, pages: &str) -> Finding {
    if fsync == "off" || pages == "off" {
        return Finding::warning("durability", "fsync or full_page_writes is off")
            .because(
                "after a crash of the machine locks and fences may be forgotten, or the database damaged",
            )
            .remedy("turn both on");
    }
    if synchronous == "off" {
        return Finding::warning("durability", "synchronous_commit is off")
            .because("a crash forgets the last commits: a lock may be granted again and a fence given twice")
            .remedy("turn it on for this database")
            .command(
                "ALTER DATABASE CURRENT SET synchronous_commit = on".replace("CURRENT", "your_database"),
            );
    }
    Finding::good("durability", "what is committed survives a crash")
}

fn standbys(names: &str) -> Finding {
    if names == "-" {
        return Finding::note("failover", "no standby has to confirm commits")
            .because("a failover to a standby that lags forgets the last locks and fences")
            .remedy("name standbys in synchronous_standby_names if you fail over");
    }
    Finding::good("failover", format!("standbys confirm commits: {names}"))
}

fn rights(granted: &str) -> Finding {
    if granted == "true" {
        return Finding::good("rights", "we may use the tables of locks");
    }
    Finding::danger("rights", "we may not use the tables of locks")
        .remedy(format!("let their owner run this and grant us SELECT, INSERT, UPDATE, DELETE:\n{TABLES}"))
}

fn old(version: &str) -> Option<Finding> {
    let version: u32 = version.parse().ok()?;
    (version < 120_000).then(|| {
        Finding::warning("version", format!("the server is older than PostgreSQL 12 ({version})"))
            .because("we do not test with it")
    })
}
