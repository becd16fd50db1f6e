//! The SQL of locks. Each text is one statement, a transaction of its own.
//!
//! Those that write say what they wrote, and nothing if they did not: then one that looks comes after. Most do, and to
//! look costs the server as much as to write.

use super::prepared::Prepared;

/// The server's clock in microseconds; not `now()`, which stands still in a transaction.
macro_rules! now {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    };
}
pub(super) use now;

pub(super) const CLOCK: &str = concat!("SELECT ", now!());

/// Name. The columns are those of a [`Found`](crate::server::Found): floor, clock, and the row if there is one.
pub(super) static LOOK: Prepared = Prepared::new(
    &["text"],
    concat!(
        "SELECT m.value, ",
        now!(),
        ", r.version, r.fence, r.fence_base, r.moment_base, r.record
         FROM leasehold_meta m LEFT JOIN leasehold_record r ON r.name = $1 WHERE m.name = 'floor'"
    ),
);

/// A moment at which the row `r` is due, or the one that it has, if that is hardly later: so the index is left alone.
macro_rules! kept_due {
    ($due:expr) => {
        concat!(
            "CASE WHEN r.due BETWEEN ",
            $due,
            " AND ",
            $due,
            " + 600000000 THEN r.due ELSE ",
            $due,
            " END"
        )
    };
}

/// Name, text, fences, how long it lasts. The text is reckoned from the row's fence, and from a clock that may have been
/// read before the row was ours: it is the clock that is told, so what the row had to wait for is not taken off the lease
/// twice. The row is due for removal at the end of some ten minutes after that: see
/// [`due`](crate::server::database::due).
///
/// No row is removed while this runs, and what is read is read after that is so: a statement that writes takes its snapshot
/// when it has its locks, even when it is called by name. One that only selects does not: this must stay an INSERT, as
/// [`MAKE`] must, or fences could begin anew.
///
/// The columns are those of [`LOOK`], but that the floor is told of a new row only: what its fences are reckoned from.
pub(super) static CLAIM: Prepared = Prepared::new(
    &["text", "text", "bigint", "bigint"],
    concat!(
        "INSERT INTO leasehold_record AS r (name, version, fence, fence_base, moment_base, due, record)
         SELECT $1, m.value + 1, m.value + $3, m.value, t.now, ((t.now + $4) / 600000000 + 1) * 600000000, $2
         FROM leasehold_meta m, (SELECT ",
        now!(),
        " AS now OFFSET 0) t WHERE m.name = 'floor'
         ON CONFLICT (name) DO UPDATE
         SET version = r.version + 1, fence = r.fence + $3, fence_base = r.fence,
             moment_base = excluded.moment_base, due = ",
        kept_due!("excluded.due"),
        ", record = excluded.record
         WHERE r.record IS NULL
         RETURNING fence_base, moment_base, version, fence, fence_base, moment_base, record"
    ),
);

/// Name, version, fence, text, when it is due, whom to wake. The new version, if it was written.
pub(super) static SWAP: Prepared = Prepared::new(
    &["text", "bigint", "bigint", "text", "bigint", "text"],
    concat!(
        "UPDATE leasehold_record r
         SET version = version + 1, fence = $3, fence_base = 0, moment_base = 0, record = $4, due = ",
        kept_due!("$5"),
        " WHERE name = $1 AND version = $2
         RETURNING version, CASE WHEN $6 <> '' THEN pg_notify('leasehold', $6) END"
    ),
);

/// Name, floor, fence, text, when it is due. Makes the row of a name that has none, if the floor is still what we found;
/// its version, if it was made.
pub(super) static MAKE: Prepared = Prepared::new(
    &["text", "bigint", "bigint", "text", "bigint"],
    "INSERT INTO leasehold_record (name, version, fence, fence_base, moment_base, due, record)
     SELECT $1, m.value + 1, $3, 0, 0, $5, $4 FROM leasehold_meta m WHERE m.name = 'floor' AND m.value = $2
     ON CONFLICT (name) DO NOTHING
     RETURNING version",
);

/// Whether so many rows are due that it is worth to be in others' way for a moment.
pub(super) const MANY_DUE: &str =
    concat!("SELECT count(*) = 64 FROM (SELECT FROM leasehold_record WHERE due < ", now!(), " LIMIT 64) due");

/// Removes some rows that are due, the oldest first, and raises the floor above them.
///
/// While it runs nobody writes to the table, so no name's fence can be reckoned from the floor that was. It does not wait
/// for that long: the next time will do.
pub(super) const SWEEP: &str = concat!(
    "SET LOCAL lock_timeout = '50ms';
     LOCK TABLE leasehold_record IN SHARE ROW EXCLUSIVE MODE;
     WITH gone AS (
       DELETE FROM leasehold_record WHERE name IN (
         SELECT name FROM leasehold_record WHERE due < ",
    now!(),
    " ORDER BY due LIMIT 500 FOR UPDATE SKIP LOCKED)
       RETURNING greatest(fence, version) AS top
     )
     UPDATE leasehold_meta
     SET value = greatest(value, (SELECT max(top) FROM gone)) WHERE name = 'floor'
     RETURNING (SELECT count(*) FROM gone);"
);

/// A page of rows in use, by how their names compare.
macro_rules! page {
    ($comparison:literal) => {
        concat!(
            "SELECT name, ",
            now!(),
            ", version, fence, fence_base, moment_base, record FROM leasehold_record
             WHERE record IS NOT NULL AND name ",
            $comparison,
            " $1 ORDER BY name LIMIT $2"
        )
    };
}

/// Name, how many: from that name on.
pub(super) static PAGE_FROM: Prepared = Prepared::new(&["text", "bigint"], page!(">="));

/// Name, how many: after that name.
pub(super) static PAGE_AFTER: Prepared = Prepared::new(&["text", "bigint"], page!(">"));
