//! What an examination of a MySQL or MariaDB finds.

use leasehold_core::{Result, backend::Finding};

use super::{MySqlDatabase, database::value};
use crate::server::{Failure, url::encryption};

/// One row of facts. Settings that one of the two brands lacks are asked for by pattern.
const FACTS: &str =
    "SELECT @@version, CAST(@@read_only AS CHAR), CAST(@@innodb_flush_log_at_trx_commit AS CHAR),
    (SELECT CAST(COUNT(*) AS CHAR) FROM leasehold_record),
    (SELECT MIN(engine) FROM information_schema.tables
     WHERE table_schema = DATABASE() AND table_name = 'leasehold_record')";

pub(super) async fn examine(database: &MySqlDatabase) -> Result<Vec<Finding>> {
    let answers = database.ask(FACTS).await.map_err(Failure::into_error)?;
    let row = answers.last().and_then(|answer| answer.rows.first());
    let fact = |at: usize| -> Result<String> {
        Ok(row.map(|row| value::<Option<String>>(row, at)).transpose()?.flatten().unwrap_or_default())
    };
    let mut findings = vec![
        Finding::note("version", format!("the server is {}", fact(0)?)),
        writable(&fact(1)?),
        durable(&fact(2)?),
        engine(&fact(4)?),
    ];
    findings.extend(galera(database).await?);
    findings.extend(encryption(database.config.common.tls, [database.config.host()]));
    findings.push(Finding::note("rows", format!("the table of locks has {} rows", fact(3)?)));
    Ok(findings)
}

fn writable(read_only: &str) -> Finding {
    if matches!(read_only, "0" | "OFF") {
        return Finding::good("read-only", "the server takes writes");
    }
    Finding::danger("read-only", "the server takes no writes: it is a replica, or read-only by its settings")
        .because("no lock can be acquired here")
        .remedy("connect to the primary")
}

fn durable(flush: &str) -> Finding {
    if flush == "1" {
        return Finding::good("durability", "what is committed survives a crash");
    }
    Finding::warning("durability", format!("innodb_flush_log_at_trx_commit is {flush}"))
        .because("a crash of the machine forgets the last commits: a lock may be granted again, a fence given twice")
        .remedy("set it to 1")
        .command("SET GLOBAL innodb_flush_log_at_trx_commit = 1")
}

fn engine(engine: &str) -> Finding {
    if engine.eq_ignore_ascii_case("InnoDB") {
        return Finding::good("engine", "the tables of locks are InnoDB's");
    }
    Finding::danger("engine", format!("the table of locks is kept by {engine}"))
        .because("only InnoDB makes a step and its condition one")
        .remedy("convert our tables")
        .command("ALTER TABLE leasehold_record ENGINE = InnoDB")
}

async fn galera(database: &MySqlDatabase) -> Result<Option<Finding>> {
    let answers = database.ask("SHOW VARIABLES LIKE 'wsrep_on'").await.map_err(Failure::into_error)?;
    let row = answers.last().and_then(|answer| answer.rows.first());
    let on = row.map(|row| value::<String>(row, 1)).transpose()?.is_some_and(|on| on == "ON");
    Ok(on.then(|| {
        Finding::warning("galera", "the server is a node of a Galera cluster")
            .because("two nodes may take the same row until one gives way at commit")
            .remedy("let all clients use the same node for locks")
    }))
}
