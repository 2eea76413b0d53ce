-- What the tool of a call asks a person while a worker makes it, and the replies to the question with that number.
ALTER TABLE planwright.offers
    ADD COLUMN question bigint,
    ADD COLUMN asked    bytea,
    ADD COLUMN replies  bytea;

-- How far such calls are. Worth no sync of the disk: after a crash of the server it is empty, and the next news follow.
CREATE UNLOGGED TABLE planwright.call_news (
    run     text COLLATE "C" NOT NULL,
    step    text COLLATE "C" NOT NULL,
    attempt bigint NOT NULL,
    number  bigint NOT NULL,
    told    bytea NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (run, step, attempt)
);
