-- Every entry gets its place in the order of commits over all streams. It stands before the hash, so that reading a
-- place reads no body. Entries of older databases are ordered by time, then by the age of their stream; a clock that
-- went back must not change the order within a stream, so an entry counts as no older than those before it.
CREATE TABLE ordered_entries (
    position INTEGER PRIMARY KEY,
    stream   INTEGER GENERATED ALWAYS AS (position >> 32) VIRTUAL,
    seq      INTEGER GENERATED ALWAYS AS (position & 4294967295) VIRTUAL,
    at       INTEGER NOT NULL,
    epoch    INTEGER NOT NULL,
    ordinal  INTEGER NOT NULL,
    hash     BLOB NOT NULL CHECK (length(hash) = 32),
    key      TEXT,
    body     BLOB NOT NULL
) STRICT;

CREATE TEMP TABLE places (position INTEGER PRIMARY KEY, ordinal INTEGER NOT NULL);

INSERT INTO places (position, ordinal)
SELECT position, row_number() OVER (ORDER BY latest, position)
FROM (
    SELECT position, max(at) OVER (PARTITION BY position >> 32 ORDER BY position) AS latest FROM entries
);

INSERT INTO ordered_entries (position, at, epoch, ordinal, hash, key, body)
SELECT entries.position, at, epoch, ordinal, hash, key, body
FROM entries JOIN places ON places.position = entries.position
ORDER BY entries.position;

DROP TABLE places;
DROP TABLE entries;
ALTER TABLE ordered_entries RENAME TO entries;

CREATE UNIQUE INDEX entries_by_key ON entries (stream, key) WHERE key IS NOT NULL;

CREATE UNIQUE INDEX entries_by_ordinal ON entries (ordinal);

CREATE TRIGGER entries_are_never_changed BEFORE UPDATE ON entries
BEGIN
    SELECT RAISE(ABORT, 'the journal is never changed');
END;

CREATE TRIGGER entries_are_never_removed BEFORE DELETE ON entries
BEGIN
    SELECT RAISE(ABORT, 'the journal is never shortened');
END;
