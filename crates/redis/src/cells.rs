//! Cells: a hash each, and one sorted index of their names.

use std::time::Duration;

use leasehold_core::{
    Operation, Result,
    backend::{Cell, CellPage, CellWrite, Expect},
};
use redis::Value;

use crate::{
    answer::{bytes, list as values, text},
    connect::{Topology, Weight},
    error::misfit,
    names::{CELL, CELLS},
    scripts,
};

pub(crate) async fn read(topology: &dyn Topology, name: &str) -> Result<Option<Cell>> {
    let mut command = redis::cmd("HMGET");
    command.arg([CELL, name].concat()).arg("version").arg("value");
    let answer = topology.call(CELL, command).await;
    let answer = answer.map_err(|fault| fault.into_error(Operation::Cell))?;
    match values(&answer) {
        Some([Value::Nil, _]) => Ok(None),
        Some([version, value]) => {
            cell(name, version, value).map(Some).ok_or_else(|| misfit(Operation::Cell, &answer))
        }
        _ => Err(misfit(Operation::Cell, &answer)),
    }
}

pub(crate) async fn write(
    topology: &dyn Topology,
    name: &str,
    expect: Expect,
    value: &[u8],
    ttl: Option<Duration>,
) -> Result<CellWrite> {
    let expected = match expect {
        Expect::Absent => String::new(),
        Expect::Version(version) => version.to_string(),
    };
    let ttl = ttl.map_or(0, |ttl| ttl.as_millis().max(1) as u64);
    let key = [CELL, name].concat();
    let answer = topology.run(CELL, Weight::Plain, &scripts::CELL_WRITE, |command| {
        command.arg(2).arg(&key).arg(CELLS).arg(&expected).arg(value).arg(ttl).arg(name);
    });
    let answer = answer.await.map_err(|fault| fault.into_error(Operation::Cell))?;
    match (&answer, text(&answer).and_then(|version| version.parse().ok())) {
        (Value::Nil, _) => Ok(CellWrite::Conflict),
        (_, Some(version)) => Ok(CellWrite::Written(version)),
        _ => Err(misfit(Operation::Cell, &answer)),
    }
}

pub(crate) async fn list(
    topology: &dyn Topology,
    prefix: &str,
    cursor: Option<&str>,
    limit: usize,
) -> Result<CellPage> {
    let from = cursor.map_or_else(|| format!("[{prefix}"), |after| format!("({after}"));
    // No text has this byte, so everything that begins with the prefix is before it.
    let to = [b"(", prefix.as_bytes(), b"\xff"].concat();
    let answer = topology.run(CELL, Weight::Plain, &scripts::CELL_LIST, |command| {
        command.arg(2).arg(CELL).arg(CELLS).arg(&from).arg(&to).arg(limit);
    });
    let answer = answer.await.map_err(|fault| fault.into_error(Operation::Cell))?;
    let parts = values(&answer).ok_or_else(|| misfit(Operation::Cell, &answer))?;
    let cells = parts.chunks_exact(3).map(|part| cell(&text(&part[0])?, &part[1], &part[2]));
    let mut cells: Vec<Cell> =
        cells.collect::<Option<_>>().ok_or_else(|| misfit(Operation::Cell, &answer))?;
    let more = cells.len() > limit;
    cells.truncate(limit);
    let next = cells.last().filter(|_| more).map(|cell| cell.name.clone());
    Ok(CellPage { cells, next })
}

fn cell(name: &str, version: &Value, value: &Value) -> Option<Cell> {
    Some(Cell { name: name.to_owned(), version: text(version)?.parse().ok()?, value: bytes(value)?.to_vec() })
}
