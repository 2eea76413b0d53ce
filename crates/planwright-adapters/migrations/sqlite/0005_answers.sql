-- Answers of the service that are given again when the same request comes again. Keys and requests are kept as hashes.
CREATE TABLE answers (
    key       BLOB PRIMARY KEY CHECK (length(key) = 32),
    principal BLOB NOT NULL CHECK (length(principal) = 32),
    request   BLOB NOT NULL CHECK (length(request) = 32),
    -- Whoever does it, while there is no answer.
    owner     TEXT NOT NULL,
    at        INTEGER NOT NULL,
    answer    BLOB
) STRICT, WITHOUT ROWID;

CREATE INDEX answers_by_time ON answers (at);
CREATE INDEX answers_by_principal ON answers (principal);
