-- Sessions and invitations of people. The text of a pass is never kept, only its hash, and so is the proof that has to come
-- with a session in a cookie. `token` is the hash of the token that a session was opened with. `mark` proves, in an encrypted
-- store, that the row was written with the key.
CREATE TABLE passes (
    number     INTEGER PRIMARY KEY,
    kind       TEXT NOT NULL CHECK (kind IN ('session', 'invitation')),
    hash       BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    proof      BLOB CHECK (length(proof) = 32),
    token      BLOB CHECK (length(token) = 32),
    bearer     TEXT NOT NULL CHECK (bearer IN ('person', 'agent', 'service')),
    name       TEXT NOT NULL,
    role       TEXT NOT NULL,
    assurance  TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    mark       BLOB
) STRICT;

CREATE INDEX passes_by_end ON passes (expires_at);
