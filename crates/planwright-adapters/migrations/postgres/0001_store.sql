-- One row per stream, written when the stream begins and when its status changes, never per entry. Every append locks the
-- row of its stream: what it decides about head, keys and status holds until it commits.
CREATE TABLE planwright.streams (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text COLLATE "C" NOT NULL UNIQUE,
    kind       text COLLATE "C" NOT NULL CHECK (kind IN ('plan', 'run')),
    plan       text COLLATE "C",
    status     text COLLATE "C",
    -- Bytes, as every text of people: Postgres keeps no NUL in a text.
    label      bytea,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    -- When the journal was closed; nothing is appended to it then.
    sealed_at  bigint
);

CREATE INDEX streams_by_plan ON planwright.streams (kind, plan);
CREATE INDEX streams_by_status ON planwright.streams (kind, status, updated_at);
CREATE INDEX streams_by_age ON planwright.streams (kind, created_at DESC, plan);
CREATE INDEX streams_to_seal ON planwright.streams (status, updated_at, name) WHERE sealed_at IS NULL;
CREATE INDEX streams_by_seal ON planwright.streams (sealed_at, id) WHERE sealed_at IS NOT NULL;

-- The journal.
CREATE TABLE planwright.entries (
    stream bigint NOT NULL,
    seq    bigint NOT NULL,
    at     bigint NOT NULL,
    epoch  bigint NOT NULL,
    hash   bytea NOT NULL CHECK (octet_length(hash) = 32),
    key    bytea,
    body   bytea NOT NULL,
    PRIMARY KEY (stream, seq)
);

CREATE UNIQUE INDEX entries_by_key ON planwright.entries (stream, key) WHERE key IS NOT NULL;

-- The order over all streams. Commits are not ordered by numbers that they drew before, so an append only notes that its
-- entries have no place yet; a reader of the feed gives places to everything that is committed by then, one reader at a time
-- (it holds the row of `feed_end`). A range of one stream is one row.
CREATE TABLE planwright.unplaced (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream    bigint NOT NULL,
    first_seq bigint NOT NULL,
    last_seq  bigint NOT NULL
);

CREATE TABLE planwright.places (
    last      bigint PRIMARY KEY,
    first     bigint NOT NULL,
    stream    bigint NOT NULL,
    first_seq bigint NOT NULL
);

CREATE INDEX places_by_stream ON planwright.places (stream, last);

CREATE TABLE planwright.feed_end (
    single   boolean PRIMARY KEY CHECK (single),
    position bigint NOT NULL
);

INSERT INTO planwright.feed_end (single, position) VALUES (true, 0);

-- A released lease keeps its epoch and has no owner.
CREATE TABLE planwright.leases (
    run        text COLLATE "C" PRIMARY KEY,
    epoch      bigint NOT NULL,
    owner      text COLLATE "C",
    expires_at bigint NOT NULL
);

-- The processes that own runs or work on requests. `lock` is the number of an advisory lock that the process holds on a
-- connection of its own: the database drops it when that connection ends. `missing_since` is when another process first saw
-- it dropped.
CREATE TABLE planwright.owners (
    owner         text COLLATE "C" PRIMARY KEY,
    lock          bigint,
    seen_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    missing_since timestamptz
);

CREATE TABLE planwright.messages (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run      text COLLATE "C" NOT NULL,
    body     bytea NOT NULL,
    hash     bytea NOT NULL,
    answered boolean NOT NULL DEFAULT false,
    refusal  bytea
);

CREATE INDEX messages_unanswered ON planwright.messages (run, id) WHERE NOT answered;

-- One row per transaction, for an hour. A process that does not know whether its transaction was committed, because the
-- connection broke, inserts the same row: if that works it was not, and cannot be any more.
CREATE TABLE planwright.commit_marks (
    id bytea PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX commit_marks_by_time ON planwright.commit_marks (at);

CREATE TABLE planwright.tokens (
    number     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         text COLLATE "C" NOT NULL UNIQUE,
    hash       bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    kind       text NOT NULL CHECK (kind IN ('person', 'agent', 'service')),
    name       text COLLATE "C" NOT NULL,
    role       text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint
);

CREATE TABLE planwright.passes (
    number     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind       text NOT NULL CHECK (kind IN ('session', 'invitation')),
    hash       bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    proof      bytea CHECK (octet_length(proof) = 32),
    token      bytea CHECK (octet_length(token) = 32),
    bearer     text NOT NULL CHECK (bearer IN ('person', 'agent', 'service')),
    name       text COLLATE "C" NOT NULL,
    role       text NOT NULL,
    assurance  text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);

CREATE INDEX passes_by_end ON planwright.passes (expires_at);

CREATE TABLE planwright.passkeys (
    number     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         bytea NOT NULL UNIQUE CHECK (octet_length(id) BETWEEN 1 AND 1023),
    bearer     text NOT NULL CHECK (bearer IN ('person', 'agent', 'service')),
    name       text COLLATE "C" NOT NULL,
    label      bytea NOT NULL,
    key        bytea NOT NULL,
    counter    bigint NOT NULL,
    created_at bigint NOT NULL,
    used_at    bigint
);

CREATE INDEX passkeys_by_owner ON planwright.passkeys (name, bearer);

-- How far each webhook was told, and what it is still to be told.
CREATE TABLE planwright.endpoints (
    name     text COLLATE "C" PRIMARY KEY,
    cursor   bigint NOT NULL,
    disabled bytea
);

CREATE TABLE planwright.deliveries (
    endpoint   text COLLATE "C" NOT NULL,
    position   bigint NOT NULL,
    part       bigint NOT NULL,
    attempts   bigint NOT NULL DEFAULT 0,
    next_at    bigint NOT NULL,
    state      text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'dead')),
    last_error bytea,
    PRIMARY KEY (endpoint, position, part)
);

CREATE INDEX deliveries_waiting ON planwright.deliveries (endpoint, next_at) WHERE state = 'waiting';

-- Requests that must not be done twice, and their answers. Keys and requests are kept as hashes.
CREATE TABLE planwright.answers (
    key       bytea PRIMARY KEY CHECK (octet_length(key) = 32),
    principal bytea NOT NULL CHECK (octet_length(principal) = 32),
    request   bytea NOT NULL CHECK (octet_length(request) = 32),
    owner     text COLLATE "C" NOT NULL,
    at        bigint NOT NULL,
    changed   text COLLATE "C",
    answer    bytea
);

CREATE INDEX answers_by_time ON planwright.answers (at);
CREATE INDEX answers_by_principal ON planwright.answers (principal);

-- How much each principal has brought into the store, by plan and in all.
CREATE TABLE planwright.brought (
    principal text COLLATE "C" NOT NULL,
    plan      text COLLATE "C" NOT NULL,
    bytes     bigint NOT NULL,
    PRIMARY KEY (principal, plan)
);

CREATE INDEX brought_to_plan ON planwright.brought (plan);

CREATE TABLE planwright.brought_in_all (
    principal text COLLATE "C" PRIMARY KEY,
    bytes     bigint NOT NULL
);

-- Values too large for the journal, by their content.
CREATE TABLE planwright.artifacts (
    digest   bytea PRIMARY KEY CHECK (octet_length(digest) = 32),
    bytes    bytea NOT NULL,
    asked_at bigint NOT NULL
);

CREATE INDEX artifacts_by_time ON planwright.artifacts (asked_at);

-- Work that one process does at a time.
CREATE TABLE planwright.turns (
    name  text PRIMARY KEY,
    token bytea NOT NULL,
    until timestamptz NOT NULL
);
