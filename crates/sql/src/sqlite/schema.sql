-- What Leasehold keeps in a SQLite file. Format 1.
-- The prefix lets the tables live beside an application's own.

CREATE TABLE IF NOT EXISTS leasehold_meta (
    key   TEXT PRIMARY KEY,  -- format, boot, floor, cell_version; of upkeep: sweep_cursor, tended
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per name. A name nobody uses keeps its row for a while, without a record but with its fence: that is one
-- page written per release instead of two. The sweep removes such rows and raises the floor in the same transaction.
CREATE TABLE IF NOT EXISTS leasehold_record (
    name   TEXT PRIMARY KEY, -- compared byte by byte: case and trailing spaces count
    fence  INTEGER NOT NULL, -- the newest given out; the record says the same, this is for statements over all rows
    record TEXT              -- as leasehold_core encodes it; NULL if nothing is left but the fence
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS leasehold_cell (
    name    TEXT PRIMARY KEY,
    version INTEGER NOT NULL, -- from one counter for all cells, so that no version ever returns
    value   BLOB NOT NULL,
    ttl     INTEGER,          -- microseconds; NULL for a cell that stays
    until   INTEGER           -- the end of the ttl on the clock of this boot
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS leasehold_cell_until ON leasehold_cell (until) WHERE until IS NOT NULL;
