-- What services of one store have in common for a short while. None of it is worth a sync of the disk: after a crash of the
-- server these tables are empty, and people begin what they had begun once more.
CREATE UNLOGGED TABLE planwright.service_notes (
    kind       text COLLATE "C" NOT NULL,
    key        bytea NOT NULL CHECK (octet_length(key) = 32),
    value      bytea NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (kind, key)
);

CREATE INDEX service_notes_by_end ON planwright.service_notes (kind, expires_at);

-- Requests that a principal may still make. `granted` is what the last look took out.
CREATE UNLOGGED TABLE planwright.request_rates (
    principal bytea PRIMARY KEY CHECK (octet_length(principal) = 32),
    free      double precision NOT NULL,
    granted   bigint NOT NULL,
    at        timestamptz NOT NULL
);

-- The services that are there.
CREATE UNLOGGED TABLE planwright.services (
    id      text COLLATE "C" PRIMARY KEY,
    seen_at timestamptz NOT NULL
);

-- Random texts that all services know. A sign-in that one of them began is ended by any.
CREATE TABLE planwright.shared_keys (
    name text COLLATE "C" PRIMARY KEY,
    key  text NOT NULL
);
