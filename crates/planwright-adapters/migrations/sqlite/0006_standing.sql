-- Finds the streams of one status, and of those the ones that nothing happened to for long, without looking at the rest.
CREATE INDEX streams_by_status ON streams (kind, status, updated_at);

-- Finds a page of the newest plans.
CREATE INDEX streams_by_age ON streams (kind, created_at DESC, plan);
