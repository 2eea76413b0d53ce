-- Who may use the service. A token itself is never kept, only its hash. `mark` proves, in an encrypted store, that the
-- row was written by somebody who knows the key.
CREATE TABLE tokens (
    number     INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    hash       BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    kind       TEXT NOT NULL CHECK (kind IN ('person', 'agent', 'service')),
    name       TEXT NOT NULL,
    role       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    mark       BLOB
) STRICT;

-- How the key of an encrypted store is locked away. Without a row nothing is encrypted. It is a table, not a file of
-- its own, so that every copy of the database can be opened, and so that both are replaced together.
CREATE TABLE vault (
    only        INTEGER PRIMARY KEY CHECK (only = 1),
    format      INTEGER NOT NULL,
    memory_kib  INTEGER NOT NULL,
    passes      INTEGER NOT NULL,
    lanes       INTEGER NOT NULL,
    salt        BLOB NOT NULL,
    nonce       BLOB NOT NULL,
    wrapped_key BLOB NOT NULL,
    -- 1 while files from before the key was set may still lie around.
    unfinished  INTEGER NOT NULL DEFAULT 0
) STRICT;
