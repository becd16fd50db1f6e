//! The SQL of locks, with its values in it: so a request needs no preparation, and several statements go in one.
//!
//! Texts and names are written as hexadecimal, so there is nothing to quote, whatever the server's mode.

use leasehold_core::backend::record::Moment;

use crate::server::{
    After, First,
    database::{GRAIN, rest},
};

/// The server's clock in microseconds, in UTC: no time zone and no summer time. It is the moment at which the statement
/// began, so never later than what it does.
pub(super) const NOW: &str = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

/// Bytes as MySQL reads them.
pub(super) fn bytes(value: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    let mut text = String::with_capacity(value.len() * 2 + 3);
    text.push_str("X'");
    text.extend(value.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| DIGITS[usize::from(digit)]));
    text.push('\'');
    text
}

/// Bytes that may be missing.
pub(super) fn maybe(value: Option<&str>) -> String {
    value.map_or_else(|| "NULL".to_owned(), |value| bytes(value.as_bytes()))
}

pub(super) fn look(name: &str) -> String {
    format!(
        "SELECT m.value, {NOW}, r.version, r.fence, r.fence_base, r.moment_base, r.record
         FROM leasehold_meta m LEFT JOIN leasehold_record r ON r.name = {} WHERE m.name = 'floor'",
        bytes(name.as_bytes())
    )
}

/// Takes a name that nobody uses, and shows who has it then. The floor is locked meanwhile, so no row is removed below it.
/// Assignments are made in order: the text comes last, because the others ask whether it is missing. All take what a new
/// row would have had, so the clock is read once, and the text is sent once.
pub(super) fn claim(name: &str, first: &First) -> String {
    let (key, text, shown) = (bytes(name.as_bytes()), bytes(first.text.as_bytes()), look(name));
    let (free, fences) = ("leasehold_record.record IS NULL", first.fences);
    let (rest, kept) = (rest(first.ends), kept_due("VALUES(due)"));
    format!(
        "INSERT INTO leasehold_record (name, version, fence, fence_base, moment_base, due, record)
         SELECT {key}, m.value + 1, m.value + {fences}, m.value, {NOW}, (({NOW} + {rest}) DIV {GRAIN} + 1) * {GRAIN}, {text}
         FROM leasehold_meta m WHERE m.name = 'floor' LOCK IN SHARE MODE
         ON DUPLICATE KEY UPDATE
           version = IF({free}, leasehold_record.version + 1, leasehold_record.version),
           fence_base = IF({free}, leasehold_record.fence, leasehold_record.fence_base),
           fence = IF({free}, leasehold_record.fence + {fences}, leasehold_record.fence),
           moment_base = IF({free}, VALUES(moment_base), leasehold_record.moment_base),
           due = IF({free}, {kept}, leasehold_record.due),
           record = IF({free}, VALUES(record), leasehold_record.record); {shown}"
    )
}

/// Writes a row of this version. Whether it did, the count of rows says; what else there is has to be looked for.
pub(super) fn swap(name: &str, version: u64, after: &After) -> String {
    let (key, record) = (bytes(name.as_bytes()), maybe(after.text.as_deref()));
    let (fence, due) = (after.fence, kept_due(&due(after.due)));
    format!(
        "UPDATE leasehold_record
         SET version = version + 1, fence = {fence}, fence_base = 0, moment_base = 0, due = {due}, record = {record}
         WHERE name = {key} AND version = {version}"
    )
}

/// Makes the row of a name that has none, if the floor is still what we found.
pub(super) fn make(name: &str, floor: u64, after: &After) -> String {
    let (key, record) = (bytes(name.as_bytes()), maybe(after.text.as_deref()));
    let (fence, due) = (after.fence, due(after.due));
    format!(
        "INSERT INTO leasehold_record (name, version, fence, fence_base, moment_base, due, record)
         SELECT {key}, m.value + 1, {fence}, 0, 0, {due}, {record}
         FROM leasehold_meta m WHERE m.name = 'floor' AND m.value = {floor} LOCK IN SHARE MODE
         ON DUPLICATE KEY UPDATE version = leasehold_record.version"
    )
}

fn due(due: Option<Moment>) -> String {
    due.map_or_else(|| "NULL".to_owned(), |due| due.0.to_string())
}

/// A moment at which a row is due, or the one that it has, if that is hardly later: so the index is left alone.
fn kept_due(due: &str) -> String {
    format!("IF(leasehold_record.due BETWEEN {due} AND {due} + {GRAIN}, leasehold_record.due, {due})")
}

/// Rows in use from a name on (`>=`) or after it (`>`).
pub(super) fn page(comparison: &str, name: &str, limit: usize) -> String {
    format!(
        "SELECT name, {NOW}, version, fence, fence_base, moment_base, record FROM leasehold_record
         WHERE record IS NOT NULL AND name {comparison} {} ORDER BY name LIMIT {limit}",
        bytes(name.as_bytes())
    )
}

/// Whether so many rows are due that it is worth to be in others' way for a moment.
pub(super) fn many_due() -> String {
    format!("SELECT COUNT(*) = 64 FROM (SELECT 1 FROM leasehold_record WHERE due < {NOW} LIMIT 64) due")
}

/// What a session that sweeps begins with: it locks no more than it removes, and does not wait for long.
pub(super) const SWEEPING: &str =
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; SET innodb_lock_wait_timeout = 1";

/// First raises the floor above some rows that are due, then removes what is below it. Whoever made a row from the floor
/// that was has done so before it could be raised. Rows that somebody has locked are left to the next.
pub(super) fn sweep() -> [String; 2] {
    let some = format!("FROM leasehold_record WHERE due < {NOW} ORDER BY due LIMIT 500");
    [
        format!(
            "UPDATE leasehold_meta SET value = GREATEST(value, COALESCE(
               (SELECT MAX(top) FROM (SELECT GREATEST(fence, version) AS top {some}) due), 0))
             WHERE name = 'floor'"
        ),
        format!(
            "DELETE r FROM (SELECT name {some} FOR UPDATE SKIP LOCKED) due
             STRAIGHT_JOIN leasehold_record r ON r.name = due.name
             WHERE r.due < {NOW} AND GREATEST(r.fence, r.version) <= (SELECT value FROM leasehold_meta WHERE name = 'floor')"
        ),
    ]
}
