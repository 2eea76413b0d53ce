-- The database takes samples of columns for its plans, and keeps them in a table of its own. Values that may be sealed are
-- not sampled: what a store held before it was encrypted would stay readable there.
ALTER TABLE planwright.streams ALTER COLUMN label SET STATISTICS 0;
ALTER TABLE planwright.entries ALTER COLUMN key SET STATISTICS 0, ALTER COLUMN body SET STATISTICS 0;
ALTER TABLE planwright.messages ALTER COLUMN body SET STATISTICS 0, ALTER COLUMN refusal SET STATISTICS 0;
ALTER TABLE planwright.passkeys ALTER COLUMN label SET STATISTICS 0, ALTER COLUMN key SET STATISTICS 0;
ALTER TABLE planwright.endpoints ALTER COLUMN disabled SET STATISTICS 0;
ALTER TABLE planwright.deliveries ALTER COLUMN last_error SET STATISTICS 0;
ALTER TABLE planwright.answers ALTER COLUMN answer SET STATISTICS 0;
ALTER TABLE planwright.artifacts ALTER COLUMN bytes SET STATISTICS 0;
ALTER TABLE planwright.offers ALTER COLUMN step SET STATISTICS 0, ALTER COLUMN tool SET STATISTICS 0,
    ALTER COLUMN idempotency_key SET STATISTICS 0, ALTER COLUMN call SET STATISTICS 0, ALTER COLUMN answer SET STATISTICS 0;
ALTER TABLE planwright.workers ALTER COLUMN host SET STATISTICS 0, ALTER COLUMN tools SET STATISTICS 0;
ALTER TABLE planwright.service_notes ALTER COLUMN value SET STATISTICS 0;
ALTER TABLE planwright.shared_keys ALTER COLUMN key SET STATISTICS 0;
