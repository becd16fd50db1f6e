//! The SQL of locks, with its values in it: so a request needs no preparation, and several statements go in one.
//!
//! Texts and names are written as hexadecimal, so there is nothing to quote, whatever the server's mode.

use std::fmt::Write as _;

/// The server's clock in microseconds, in UTC: no time zone and no summer time. It is the moment at which the statement
/// began, so never later than what it does.
pub(super) const NOW: &str = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

/// Bytes as MySQL reads them.
pub(super) fn bytes(value: &[u8]) -> String {
    let mut text = String::with_capacity(value.len() * 2 + 3);
    text.push_str("X'");
    for byte in value {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02X}");
    }
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
/// Assignments are made in order: the text comes last, because the others ask whether it is missing.
pub(super) fn claim(name: &str, text: &str, fences: u64) -> String {
    let (key, text, shown) = (bytes(name.as_bytes()), bytes(text.as_bytes()), look(name));
    let free = "leasehold_record.record IS NULL";
    format!(
        "INSERT INTO leasehold_record (name, version, fence, fence_base, moment_base, record)
         SELECT {key}, m.value + 1, m.value + {fences}, m.value, {NOW}, {text}
         FROM leasehold_meta m WHERE m.name = 'floor' LOCK IN SHARE MODE
         ON DUPLICATE KEY UPDATE
           version = IF({free}, leasehold_record.version + 1, leasehold_record.version),
           fence_base = IF({free}, leasehold_record.fence, leasehold_record.fence_base),
           fence = IF({free}, leasehold_record.fence + {fences}, leasehold_record.fence),
           moment_base = IF({free}, {NOW}, leasehold_record.moment_base),
           record = IF({free}, {text}, leasehold_record.record); {shown}"
    )
}

/// Writes a row of this version, and shows it if it was another.
pub(super) fn swap(name: &str, version: u64, fence: u64, text: Option<&str>) -> String {
    let (key, record, shown) = (bytes(name.as_bytes()), maybe(text), look(name));
    let written = if text.is_some() { "0" } else { NOW };
    format!(
        "UPDATE leasehold_record
         SET version = version + 1, fence = {fence}, fence_base = 0, moment_base = {written}, record = {record}
         WHERE name = {key} AND version = {version}; {shown}"
    )
}

/// Makes the row of a name that has none, if the floor is still what we found.
pub(super) fn make(name: &str, floor: u64, fence: u64, text: Option<&str>) -> String {
    let (key, record, shown) = (bytes(name.as_bytes()), maybe(text), look(name));
    format!(
        "INSERT INTO leasehold_record (name, version, fence, fence_base, moment_base, record)
         SELECT {key}, m.value + 1, {fence}, 0, 0, {record}
         FROM leasehold_meta m WHERE m.name = 'floor' AND m.value = {floor} LOCK IN SHARE MODE
         ON DUPLICATE KEY UPDATE version = leasehold_record.version; {shown}"
    )
}

/// Rows in use from a name on (`>=`) or after it (`>`).
pub(super) fn page(comparison: &str, name: &str, limit: usize) -> String {
    format!(
        "SELECT name, {NOW}, version, fence, fence_base, moment_base, record FROM leasehold_record
         WHERE record IS NOT NULL AND name {comparison} {} ORDER BY name LIMIT {limit}",
        bytes(name.as_bytes())
    )
}

/// First raises the floor above all that nobody has used for a minute, then removes some of what is below it. Whoever
/// made a row from the floor that was has done so before it could be raised.
pub(super) fn sweep() -> [String; 2] {
    let idle = format!("record IS NULL AND moment_base < {NOW} - 60000000");
    [
        format!(
            "UPDATE leasehold_meta SET value = GREATEST(value, COALESCE(
               (SELECT MAX(GREATEST(fence, version)) FROM leasehold_record WHERE {idle}), 0))
             WHERE name = 'floor'"
        ),
        format!(
            "DELETE FROM leasehold_record WHERE {idle}
             AND GREATEST(fence, version) <= (SELECT value FROM leasehold_meta WHERE name = 'floor') LIMIT 1000"
        ),
    ]
}
