-- How far each webhook was told. `disabled` says why nothing is sent any more.
CREATE TABLE endpoints (
    name     TEXT PRIMARY KEY,
    cursor   INTEGER NOT NULL,
    disabled TEXT
) STRICT, WITHOUT ROWID;

-- What a webhook is still to be told, by its place in the feed. What was told is removed.
CREATE TABLE deliveries (
    endpoint   TEXT NOT NULL REFERENCES endpoints (name),
    position   INTEGER NOT NULL,
    part       INTEGER NOT NULL,
    attempts   INTEGER NOT NULL DEFAULT 0,
    next_at    INTEGER NOT NULL,
    state      TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'dead')),
    last_error TEXT,
    PRIMARY KEY (endpoint, position, part)
) STRICT, WITHOUT ROWID;

CREATE INDEX deliveries_waiting ON deliveries (endpoint, next_at) WHERE state = 'waiting';
