-- One row per stream, written when the stream begins and when its status changes, never per entry.
CREATE TABLE streams (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    kind       TEXT NOT NULL CHECK (kind IN ('plan', 'run')),
    plan       TEXT,
    status     TEXT,
    label      TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE INDEX streams_by_plan ON streams (kind, plan);

-- The journal. `position` is stream * 2^32 + seq: entries of a stream lie side by side, the last one is its head, and
-- an append at the end touches one page. The hash stands before the body, so that reading a head reads no body.
CREATE TABLE entries (
    position INTEGER PRIMARY KEY,
    stream   INTEGER GENERATED ALWAYS AS (position >> 32) VIRTUAL,
    seq      INTEGER GENERATED ALWAYS AS (position & 4294967295) VIRTUAL,
    at       INTEGER NOT NULL,
    epoch    INTEGER NOT NULL,
    hash     BLOB NOT NULL CHECK (length(hash) = 32),
    key      TEXT,
    body     BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX entries_by_key ON entries (stream, key) WHERE key IS NOT NULL;

CREATE TRIGGER entries_are_never_changed BEFORE UPDATE ON entries
BEGIN
    SELECT RAISE(ABORT, 'the journal is never changed');
END;

CREATE TRIGGER entries_are_never_removed BEFORE DELETE ON entries
BEGIN
    SELECT RAISE(ABORT, 'the journal is never shortened');
END;

-- A released lease keeps its epoch and has no owner.
CREATE TABLE leases (
    run        TEXT PRIMARY KEY,
    epoch      INTEGER NOT NULL,
    owner      TEXT,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    run      TEXT NOT NULL,
    body     BLOB NOT NULL,
    hash     BLOB NOT NULL,
    answered INTEGER NOT NULL DEFAULT 0,
    refusal  TEXT
) STRICT;

CREATE INDEX messages_unanswered ON messages (run) WHERE answered = 0;

-- Entries that were acknowledged once and are missing, kept when the heads file is cut.
CREATE TABLE losses (
    stream TEXT PRIMARY KEY,
    seq    INTEGER NOT NULL,
    hash   BLOB NOT NULL
) STRICT, WITHOUT ROWID;
