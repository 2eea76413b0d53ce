-- How much each principal has brought into the store, by plan, so that it is given back when the plan is removed for good;
-- and the sum over all plans. What was brought before this table was made is not counted.
CREATE TABLE brought (
    principal TEXT NOT NULL,
    plan      TEXT NOT NULL,
    bytes     INTEGER NOT NULL,
    PRIMARY KEY (principal, plan)
) STRICT, WITHOUT ROWID;

CREATE INDEX brought_to_plan ON brought (plan);

CREATE TABLE brought_in_all (
    principal TEXT PRIMARY KEY,
    bytes     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
