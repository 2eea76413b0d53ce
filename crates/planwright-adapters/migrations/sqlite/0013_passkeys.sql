-- The public halves of the passkeys of people. `counter` is how often the device says that one was used. `mark` proves, in an
-- encrypted store, that the row was written with the key.
CREATE TABLE passkeys (
    number     INTEGER PRIMARY KEY,
    id         BLOB NOT NULL UNIQUE CHECK (length(id) BETWEEN 1 AND 1023),
    bearer     TEXT NOT NULL CHECK (bearer IN ('person', 'agent', 'service')),
    name       TEXT NOT NULL,
    label      TEXT NOT NULL,
    key        BLOB NOT NULL,
    counter    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    used_at    INTEGER,
    mark       BLOB
) STRICT;

CREATE INDEX passkeys_by_owner ON passkeys (name, bearer);
