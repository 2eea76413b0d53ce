-- Attempts that workers carry out. A row is written with the entry that starts the attempt, and removed with the entry that
-- ends it. A claim counts while `claimed_until` has not passed, by the clock of the database.
CREATE TABLE planwright.offers (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run             text COLLATE "C" NOT NULL,
    step            text COLLATE "C" NOT NULL,
    attempt         bigint NOT NULL,
    capability      text COLLATE "C" NOT NULL,
    idempotency_key text NOT NULL,
    tool            text COLLATE "C" NOT NULL,
    definition      bytea NOT NULL CHECK (octet_length(definition) = 32),
    class           text NOT NULL CHECK (class IN ('safe', 'keyed', 'unsafe')),
    call            bytea NOT NULL,
    state           text NOT NULL DEFAULT 'offered'
                    CHECK (state IN ('offered', 'claimed', 'answered', 'withdrawn', 'lost')),
    -- The call is to be stopped.
    unwanted        boolean NOT NULL DEFAULT false,
    claimed_by      text COLLATE "C",
    claim           bigint,
    claimed_until   bigint,
    answer          bytea,
    offered_at      bigint NOT NULL,
    UNIQUE (run, step, attempt)
);

CREATE INDEX offers_to_claim ON planwright.offers (capability, id) WHERE state = 'offered';
CREATE INDEX offers_claimed ON planwright.offers (claimed_by) WHERE state = 'claimed';

CREATE SEQUENCE planwright.claims;

-- The workers, with the tools that they have. Whether one is alive is in `owners`.
CREATE TABLE planwright.workers (
    id           text COLLATE "C" PRIMARY KEY,
    host         bytea NOT NULL,
    pid          bigint NOT NULL,
    version      text NOT NULL,
    capabilities text[] NOT NULL,
    concurrency  bigint NOT NULL,
    tools        bytea NOT NULL,
    draining     boolean NOT NULL DEFAULT false,
    started_at   bigint NOT NULL,
    seen_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);
