-- The lock of an encrypted store: the key that seals its values, under a passphrase. Every transaction that writes compares
-- `key_id` with the key that its process has, so that none is committed under another one.
CREATE TABLE planwright.vault (
    single      boolean PRIMARY KEY CHECK (single),
    format      bigint NOT NULL,
    memory_kib  bigint NOT NULL,
    passes      bigint NOT NULL,
    lanes       bigint NOT NULL,
    salt        bytea NOT NULL,
    nonce       bytea NOT NULL,
    wrapped_key bytea NOT NULL,
    key_id      text COLLATE "C" NOT NULL
);

-- Proofs that the writer of a row knew the key of an encrypted store.
ALTER TABLE planwright.tokens ADD COLUMN mark bytea;
ALTER TABLE planwright.passes ADD COLUMN mark bytea;
ALTER TABLE planwright.passkeys ADD COLUMN mark bytea;
