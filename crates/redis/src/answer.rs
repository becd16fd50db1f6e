//! What scripts answer, as values. Nothing here panics on what a server sent: what fits no shape is an error that
//! shows it.

use std::time::Duration;

use leasehold_core::{
    Operation, Result,
    backend::{Broken, Release, Renewal},
};
use redis::Value;

use crate::error::misfit;

/// The answer to an attempt.
#[derive(Debug)]
pub(crate) enum Tried {
    /// Granted by this request.
    Granted { fence: u64 },
    /// Granted by an earlier one.
    Held { fence: u64, left: Duration },
    /// Released already: this is a request that came too late.
    Withdrawn,
    /// The name is in use as something else.
    Other { kind: String, number: i64 },
    /// Somebody else has it.
    Busy { left: i64, place: usize, waiters: usize, scene: Scene },
}

/// What a name is in use as, and by whom.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) kind: String,
    pub(crate) number: i64,
    pub(crate) fence: u64,
    /// The server's time, in milliseconds.
    pub(crate) now: u64,
    pub(crate) rows: Vec<Row>,
}

/// One holder, as the server has it.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) holder: Vec<u8>,
    pub(crate) count: u32,
    /// What is left of its lease, in milliseconds; -1 for ever.
    pub(crate) left: i64,
    pub(crate) note: Note,
}

/// What we keep about a holder where Redisson has no room for it.
#[derive(Debug, Default)]
pub(crate) struct Note {
    pub(crate) fence: Option<u64>,
    pub(crate) count: u32,
    pub(crate) label: Option<String>,
}

/// Everything about a name.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) scene: Scene,
    /// Who stands in line, in order.
    pub(crate) line: Vec<String>,
    /// Who said that they wait.
    pub(crate) told: Vec<Told>,
}

/// One who said that it waits.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) id: String,
    pub(crate) until: u64,
    pub(crate) since: u64,
    pub(crate) wants: String,
    pub(crate) label: Option<String>,
}

impl Tried {
    pub(crate) fn read(value: &Value) -> Result<Self> {
        if let Value::Int(fence) = value {
            return Ok(Self::Granted { fence: fence.cast_unsigned() });
        }
        let tried = list(value).and_then(|parts| match (text(parts.first()?)?.as_str(), &parts[1..]) {
            ("held", [fence, left]) => {
                Some(Self::Held { fence: number(fence)?.cast_unsigned(), left: millis(number(left)?) })
            }
            ("withdrawn", []) => Some(Self::Withdrawn),
            ("other", [kind, count]) => Some(Self::Other { kind: text(kind)?, number: number(count)? }),
            ("busy", [left, place, waiters, scene @ ..]) => Some(Self::Busy {
                left: number(left)?,
                place: usize::try_from(number(place)?).ok()?,
                waiters: usize::try_from(number(waiters)?).unwrap_or(0),
                scene: Scene::read(scene)?,
            }),
            _ => None,
        });
        tried.ok_or_else(|| misfit(Operation::Acquire, value))
    }
}

impl Scene {
    fn read(parts: &[Value]) -> Option<Self> {
        let [kind, count, fence, now, rows] = parts else { return None };
        Some(Self {
            kind: text(kind)?,
            number: number(count)?,
            fence: number(fence)?.cast_unsigned(),
            now: number(now)?.cast_unsigned(),
            rows: list(rows)?.iter().filter_map(Row::read).collect(),
        })
    }
}

impl Row {
    fn read(value: &Value) -> Option<Self> {
        let [holder, count, left, note] = list(value)? else { return None };
        Some(Self {
            holder: bytes(holder)?.to_vec(),
            count: u32::try_from(number(count)?).ok()?,
            left: number(left)?,
            note: Note::read(&text(note)?),
        })
    }
}

impl Note {
    /// `fence count label`, or nothing.
    fn read(text: &str) -> Self {
        let mut parts = text.splitn(3, ' ');
        let fence = parts.next().and_then(|fence| fence.parse().ok());
        let count = parts.next().and_then(|count| count.parse().ok()).unwrap_or(1);
        let label = parts.next().filter(|label| !label.is_empty()).map(str::to_owned);
        Self { fence, count, label }
    }
}

impl View {
    pub(crate) fn read(value: &Value) -> Result<Self> {
        let view = list(value).and_then(|parts| {
            let (scene, rest) = parts.split_at_checked(5)?;
            let [line, told] = rest else { return None };
            let told = list(told)?.chunks_exact(2);
            Some(Self {
                scene: Scene::read(scene)?,
                line: list(line)?.iter().filter_map(text).collect(),
                told: told.filter_map(|pair| Told::read(&text(&pair[0])?, &text(&pair[1])?)).collect(),
            })
        });
        view.ok_or_else(|| misfit(Operation::Inspect, value))
    }
}

impl Told {
    /// `until since wants label`
    fn read(id: &str, text: &str) -> Option<Self> {
        let mut parts = text.splitn(4, ' ');
        Some(Self {
            id: id.to_owned(),
            until: parts.next()?.parse().ok()?,
            since: parts.next()?.parse().ok()?,
            wants: parts.next()?.to_owned(),
            label: parts.next().filter(|label| !label.is_empty()).map(str::to_owned),
        })
    }
}

/// What is left of a lease, or that it is gone and perhaps by whom.
pub(crate) fn renewal(value: &Value) -> Result<Renewal> {
    if let Value::Int(left) = value {
        return Ok(Renewal::Renewed { granted: millis(*left) });
    }
    if let Some([how, why]) = list(value)
        && text(how).as_deref() == Some("error")
    {
        let why = text(why).unwrap_or_default();
        let (code, details) = why.split_once(' ').unwrap_or((&why, ""));
        return Err(crate::error::refused(code, details, Operation::Renew));
    }
    gone(value, Operation::Renew).map(Renewal::Lost)
}

/// Released, or that it was gone and perhaps by whom.
pub(crate) fn release(value: &Value) -> Result<Release> {
    if let Value::Int(1) = value {
        return Ok(Release::Released);
    }
    gone(value, Operation::Release).map(Release::Gone)
}

fn gone(value: &Value, operation: Operation) -> Result<Option<Broken>> {
    match list(value) {
        Some([how, mark]) if text(how).as_deref() == Some("gone") => {
            Ok(text(mark).and_then(|mark| serde_json::from_str(&mark).ok()))
        }
        _ => Err(misfit(operation, value)),
    }
}

/// The count of a latch, or what the name is in use as.
pub(crate) fn count(value: &Value) -> Result<Result<u64, (String, i64)>> {
    if let Value::Int(count) = value {
        return Ok(Ok(count.cast_unsigned()));
    }
    match Tried::read(value) {
        Ok(Tried::Other { kind, number }) => Ok(Err((kind, number))),
        _ => Err(misfit(Operation::Latch, value)),
    }
}

/// Milliseconds as the server counts them; a lease without end is as long as any can be.
pub(crate) fn millis(left: i64) -> Duration {
    const YEAR: u64 = 365 * 24 * 3600 * 1000;
    Duration::from_millis(if left == -1 { YEAR } else { left.max(0).cast_unsigned() })
}

pub(crate) fn list(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(values) => Some(values),
        _ => None,
    }
}

pub(crate) fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text.as_bytes()),
        _ => None,
    }
}

pub(crate) fn text(value: &Value) -> Option<String> {
    bytes(value).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

pub(crate) fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        other => text(other)?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::{proptest, test_runner::Config};

    use super::*;
    use crate::fuzz;

    proptest! {
        #![proptest_config(Config { cases: 500, failure_persistence: None, ..Config::default() })]

        #[test]
        fn nothing_a_server_answers_makes_reading_panic(value in fuzz::value()) {
            drop(Tried::read(&value));
            drop(View::read(&value));
            drop(renewal(&value));
            drop(release(&value));
            drop(count(&value));
        }
    }
}
