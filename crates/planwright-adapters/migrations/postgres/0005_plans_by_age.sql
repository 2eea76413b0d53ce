-- Pages of plans, and nothing else. With runs in it, the index also answered which runs a plan has: by reading all of them,
-- whenever the database had no figures that said better, as after many were written at once. Without figures it also takes
-- one kind for a few rows, which are read and sorted, and what is not of the other kind for many, of which a page is the
-- beginning of the index.
DROP INDEX planwright.streams_by_age;

CREATE INDEX streams_by_age ON planwright.streams (created_at DESC, plan) WHERE kind <> 'run' AND plan IS NOT NULL;
