-- Journals that left this file for a sealed one beside it. The stream's row stays, and so do number and hash of its last
-- entry. `cleared` is 0 while some of its entries are still here: they are removed in portions, and no reader asks for them.
ALTER TABLE streams ADD COLUMN sealed INTEGER NOT NULL DEFAULT 0;

-- Finds the streams that may be sealed, without looking at those that are.
CREATE INDEX streams_to_seal ON streams (status, updated_at, name) WHERE sealed = 0;

CREATE TABLE sealed_journals (
    stream        INTEGER PRIMARY KEY,
    seq           INTEGER NOT NULL,
    hash          BLOB NOT NULL CHECK (length(hash) = 32),
    first_ordinal INTEGER NOT NULL,
    last_ordinal  INTEGER NOT NULL,
    file          TEXT NOT NULL,
    digest        BLOB NOT NULL CHECK (length(digest) = 32),
    bytes         INTEGER NOT NULL,
    sealed_at     INTEGER NOT NULL,
    kind          TEXT NOT NULL,
    cleared       INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX sealed_by_order ON sealed_journals (last_ordinal);
CREATE INDEX sealed_by_time ON sealed_journals (kind, sealed_at, stream);
CREATE INDEX sealed_uncleared ON sealed_journals (stream) WHERE cleared = 0;

-- The order over all streams goes on from here, also if its last entries are not in this file any more. `removed` is
-- how many entries of it were removed for good.
CREATE TABLE order_floor (
    only    INTEGER PRIMARY KEY CHECK (only = 1),
    ordinal INTEGER NOT NULL,
    removed INTEGER NOT NULL
) STRICT;

-- Journals that were removed for good: the file of heads may still promise them for a while.
CREATE TABLE removed_journals (
    name       TEXT PRIMARY KEY,
    seq        INTEGER NOT NULL,
    removed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Only what is in a sealed file may leave the table.
DROP TRIGGER entries_are_never_removed;

CREATE TRIGGER entries_are_never_removed BEFORE DELETE ON entries
WHEN NOT EXISTS (SELECT 1 FROM sealed_journals WHERE stream = OLD.position >> 32)
BEGIN
    SELECT RAISE(ABORT, 'the journal is never shortened');
END;
