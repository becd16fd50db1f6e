//! Statements that refuse a stale fence where the data is: in PostgreSQL, SQLite, MySQL or MariaDB, and Redis.
//!
//! In a database there are two ways. If what is written is one row, give it a column and let the write itself ask:
//!
//! ```sql
//! UPDATE orders SET state = 'paid', fence = $2 WHERE id = $1 AND fence <= $2   -- no row changed: stale, stop
//! ```
//!
//! If it is more than that, keep the fences in a table of their own: create it once (`TABLE`), and begin the transaction of
//! every write with `PASS`. It changes **one** row if the fence passes. If it changes **none**, a later holder has been there:
//! roll back. The row stays locked until the transaction ends, so nobody comes in between, whatever the writes are.
//!
//! A read that a later write depends on belongs into such a transaction too: after it no older holder can write.
//!
//! Names and fences are parameters, the fence a signed 64-bit integer; zero is refused by the table. The rows stay: remove
//! those whose names will not come back, and no others.

/// For PostgreSQL: parameters `$1` name, `$2` fence.
pub mod postgres {
    /// Creates the table of fences that were seen.
    pub const TABLE: &str = "CREATE TABLE IF NOT EXISTS leasehold_seen \
        (name text PRIMARY KEY, fence bigint NOT NULL CHECK (fence > 0))";

    /// Changes one row if the fence passes, else none.
    pub const PASS: &str = "INSERT INTO leasehold_seen (name, fence) VALUES ($1, $2) \
        ON CONFLICT (name) DO UPDATE SET fence = excluded.fence WHERE leasehold_seen.fence <= excluded.fence";
}

/// For SQLite: parameters `?1` name, `?2` fence. Begin with `BEGIN IMMEDIATE`.
pub mod sqlite {
    /// Creates the table of fences that were seen.
    pub const TABLE: &str = "CREATE TABLE IF NOT EXISTS leasehold_seen \
        (name TEXT PRIMARY KEY, fence INTEGER NOT NULL CHECK (fence > 0)) STRICT, WITHOUT ROWID";

    /// Changes one row if the fence passes, else none.
    pub const PASS: &str = "INSERT INTO leasehold_seen (name, fence) VALUES (?1, ?2) \
        ON CONFLICT (name) DO UPDATE SET fence = excluded.fence WHERE leasehold_seen.fence <= excluded.fence";
}

/// For MySQL and MariaDB, where it takes two statements.
pub mod mysql {
    /// Creates the table of fences that were seen. Names are compared byte by byte, as locks are.
    pub const TABLE: &str = "CREATE TABLE IF NOT EXISTS leasehold_seen \
        (name varbinary(512) PRIMARY KEY, fence bigint NOT NULL CHECK (fence > 0), \
        passed bigint NOT NULL DEFAULT 0) ENGINE = InnoDB";

    /// Sees to it that there is a row. Parameters: name, fence. What it changes means nothing.
    pub const KNOW: &str =
        "INSERT INTO leasehold_seen (name, fence) VALUES (?, ?) ON DUPLICATE KEY UPDATE name = name";

    /// Changes one row if the fence passes, else none. Parameters: fence, name, fence.
    ///
    /// It counts, because a row that is written as it was does not count as changed.
    pub const PASS: &str =
        "UPDATE leasehold_seen SET fence = ?, passed = passed + 1 WHERE name = ? AND fence <= ?";
}

/// For Redis and Valkey: scripts for `EVAL`, or `EVALSHA`.
///
/// In a cluster all keys of a script must be in one slot: give them the same braces, `seen:{order:42}` and `{order:42}`.
/// Fences are compared as texts, since Lua's numbers lose digits of large ones.
pub mod redis {
    /// Sets a value if the fence passes: `KEYS` are where the fence is kept, and the value's key; `ARGV` the fence and the
    /// value. Gives 1 if it did, 0 if the fence is stale.
    ///
    /// Keep the fence's key for as long as a holder could come back late; it must not be evicted.
    pub const SET: &str = "\
local seen, fence = redis.call('GET', KEYS[1]) or '0', ARGV[1]
if not string.match(fence, '^[1-9]%d*$') then return redis.error_reply('a fence is a number from 1 on') end
if #fence < #seen or (#fence == #seen and fence < seen) then return 0 end
redis.call('SET', KEYS[1], fence)
redis.call('SET', KEYS[2], ARGV[2])
return 1
";

    /// The same with any one command in place of `SET`: `KEYS` are where the fence is kept and the key that the command is
    /// about, `ARGV` the fence, the command, and what follows after the key. Gives what the command gives, or an error that
    /// begins with `STALE`.
    pub const CALL: &str = "\
local seen, fence = redis.call('GET', KEYS[1]) or '0', ARGV[1]
if not string.match(fence, '^[1-9]%d*$') then return redis.error_reply('a fence is a number from 1 on') end
if #fence < #seen or (#fence == #seen and fence < seen) then
  return redis.error_reply('STALE a later holder has fence ' .. seen)
end
redis.call('SET', KEYS[1], fence)
return redis.call(ARGV[2], KEYS[2], unpack(ARGV, 3))
";
}
