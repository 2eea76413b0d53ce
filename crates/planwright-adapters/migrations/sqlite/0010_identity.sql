-- Whose store this is. One row, signed with the key of the user who made or adopted it. `path` and `file` are marks of
-- where the database was and which file it was, made with that key: a reader of the file alone learns neither.
CREATE TABLE identity (
    only       INTEGER PRIMARY KEY CHECK (only = 1),
    format     INTEGER NOT NULL,
    store      BLOB NOT NULL CHECK (length(store) = 16),
    public_key BLOB NOT NULL CHECK (length(public_key) = 32),
    made_at    INTEGER NOT NULL,
    adopted_at INTEGER,
    path       BLOB NOT NULL CHECK (length(path) = 16),
    file       BLOB NOT NULL CHECK (length(file) = 16),
    signature  BLOB NOT NULL CHECK (length(signature) = 64)
) STRICT;

-- The mark of the owner's key over stream, number and hash. The last entry of every append has one: a journal whose last
-- entry has none, or a wrong one, was not written by the owner. It covers everything before it by the chain of hashes.
ALTER TABLE entries ADD COLUMN mark BLOB;
ALTER TABLE sealed_journals ADD COLUMN mark BLOB;

-- A store that is adopted is marked anew. What its entries say stays.
DROP TRIGGER entries_are_never_changed;

CREATE TRIGGER entries_are_never_changed BEFORE UPDATE OF position, at, epoch, ordinal, hash, key, body ON entries
BEGIN
    SELECT RAISE(ABORT, 'the journal is never changed');
END;
