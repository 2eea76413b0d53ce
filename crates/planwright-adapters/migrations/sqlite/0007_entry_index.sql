-- The order over all streams and the unique keys leave the journal's table. As indexes of it they cost two or three more
-- pages with every commit; as tables of their own they are written in batches. The newest entries are in neither:
-- `unindexed` has one row for each stream that has such entries, and `first` is the position of the first of them. A
-- stream gets its row with its first such entry, so that the entries after it cost nothing beside themselves.
DROP INDEX entries_by_key;
DROP INDEX entries_by_ordinal;

CREATE TABLE entry_places (
    ordinal  INTEGER PRIMARY KEY,
    position INTEGER NOT NULL
) STRICT;

CREATE TABLE entry_keys (
    stream INTEGER NOT NULL,
    key    TEXT NOT NULL,
    PRIMARY KEY (stream, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE unindexed (
    stream INTEGER PRIMARY KEY,
    first  INTEGER NOT NULL
) STRICT;

INSERT INTO entry_places (ordinal, position) SELECT ordinal, position FROM entries ORDER BY ordinal;

INSERT INTO entry_keys (stream, key) SELECT stream, key FROM entries WHERE key IS NOT NULL ORDER BY stream, key;
