-- The journal that a request changed, noted in the commit that changed it. Without an answer and without a change,
-- nothing was done. Requests that an earlier version began may have changed anything: theirs is empty.
ALTER TABLE answers ADD COLUMN changed TEXT;

UPDATE answers SET changed = '' WHERE answer IS NULL;
