//! Cells: a hash each, and one sorted index of their names.

use std::time::Duration;

use leasehold_core::{
    Error, ErrorKind, Operation, Result,
    backend::{Cell, CellPage, CellWrite, Expect},
};
use redis::Value;

use crate::{
    answer::{bytes, list as values},
    connect::{Topology, Weight},
    error::{Fault, misfit},
    names::{CELL, CELLS},
    scripts,
};

pub(crate) async fn read(topology: &dyn Topology, name: &str) -> Result<Option<Cell>> {
    let mut command = redis::cmd("HMGET");
    command.arg([CELL, name].concat()).arg("version").arg("value");
    let answer = topology.call(CELL, command).await;
    let answer = answer.map_err(|fault| fault.into_error(Operation::Cell))?;
    found(name, &answer)
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
    let answer = topology.run(CELL, Weight::Promise, &scripts::CELL_WRITE, |command| {
        command.arg(2).arg(&key).arg(CELLS).arg(&expected).arg(value).arg(ttl).arg(name);
    });
    match answer.await {
        Ok(answer) => written(&answer),
        // Nothing was written, so there is nothing to confirm.
        Err(Fault::Unconfirmed { value: Value::Nil, .. }) => Ok(CellWrite::Conflict),
        // Unlike a grant it cannot be taken back: somebody may have read it.
        Err(Fault::Unconfirmed { confirmed, wanted, .. }) => {
            let message = format!(
                "only {confirmed} of {wanted} replicas confirmed the write in time, so a failover may undo it; see to the \
                 replicas, or ask for fewer with wait_replicas"
            );
            Err(Error::new(ErrorKind::Indeterminate, Operation::Cell, message))
        }
        Err(fault) => Err(fault.into_error(Operation::Cell)),
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
    page(limit, &answer)
}

fn found(name: &str, answer: &Value) -> Result<Option<Cell>> {
    match values(answer) {
        Some([Value::Nil, _]) => Ok(None),
        Some([held, value]) => {
            cell(name, held, value).map(Some).ok_or_else(|| misfit(Operation::Cell, answer))
        }
        _ => Err(misfit(Operation::Cell, answer)),
    }
}

fn written(answer: &Value) -> Result<CellWrite> {
    match (answer, version(answer)) {
        (Value::Nil, _) => Ok(CellWrite::Conflict),
        (_, Some(version)) => Ok(CellWrite::Written(version)),
        _ => Err(misfit(Operation::Cell, answer)),
    }
}

fn page(limit: usize, answer: &Value) -> Result<CellPage> {
    let (parts, rest) = values(answer).unwrap_or_default().as_chunks::<3>();
    let cells = parts.iter().map(|[name, version, value]| cell(word(name)?, version, value));
    let cells = cells.collect::<Option<Vec<_>>>().filter(|_| rest.is_empty() && values(answer).is_some());
    let mut cells = cells.ok_or_else(|| misfit(Operation::Cell, answer))?;
    let more = cells.len() > limit;
    cells.truncate(limit);
    let next = cells.last().filter(|_| more).map(|cell| cell.name.clone());
    Ok(CellPage { cells, next })
}

fn cell(name: &str, held: &Value, value: &Value) -> Option<Cell> {
    Some(Cell { name: name.to_owned(), version: version(held)?, value: bytes(value)?.to_vec() })
}

/// A version is compared as text: one that we would write in another way could never be expected.
fn version(value: &Value) -> Option<u64> {
    let text = word(value)?;
    text.parse().ok().filter(|version: &u64| version.to_string() == text)
}

/// A text that is what it seems: under a name that had to be mended nothing would be found.
fn word(value: &Value) -> Option<&str> {
    bytes(value).and_then(|bytes| std::str::from_utf8(bytes).ok())
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::any, proptest, test_runner::Config};

    use super::*;
    use crate::fuzz;

    proptest! {
        #![proptest_config(Config { cases: 500, failure_persistence: None, ..Config::default() })]

        #[test]
        fn nothing_a_server_answers_makes_reading_cells_panic(value in fuzz::value(), limit in 0..3_usize) {
            drop(found("a", &value));
            drop(written(&value));
            drop(page(limit, &value));
        }

        #[test]
        fn any_cell_is_read_as_it_was_written(
            name in ".{0,20}", version in any::<u64>(), value in vec(any::<u8>(), 0..40),
        ) {
            let fields = as_stored(&Cell { name: name.clone(), version, value: value.clone() });
            let read = found(&name, &Value::Array(fields[1..].to_vec())).unwrap().unwrap();
            assert_eq!((read.version, &read.value), (version, &value));
            assert_eq!(written(&fields[1]).unwrap(), CellWrite::Written(version));
            let page = page(1, &Value::Array(fields.to_vec())).unwrap();
            assert_eq!((page.cells, page.next), (vec![read], None));
        }

        #[test]
        fn what_is_taken_for_a_cell_is_stored_just_so(fields in vec(fuzz::cell_field(), 0..8)) {
            let answer = Value::Array(fields);
            let Ok(page) = page(usize::MAX, &answer) else { return Ok(()) };
            let stored: Vec<Value> = page.cells.iter().flat_map(as_stored).collect();
            let raw = |values: &[Value]| values.iter().map(|value| bytes(value).unwrap().to_vec()).collect::<Vec<_>>();
            assert_eq!(raw(&stored), raw(values(&answer).unwrap()));
        }
    }

    fn as_stored(cell: &Cell) -> [Value; 3] {
        [cell.name.clone().into_bytes(), cell.version.to_string().into_bytes(), cell.value.clone()]
            .map(Value::BulkString)
    }
}
