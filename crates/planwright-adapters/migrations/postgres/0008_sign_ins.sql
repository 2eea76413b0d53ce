-- What people's sign-ins to the servers of tools came to, by a name that says nothing about the server or the person. One
-- process at a time renews one: that spends what is kept.
CREATE TABLE planwright.sign_ins (
    name           text COLLATE "C" PRIMARY KEY,
    kept           bytea NOT NULL,
    renewing_by    text,
    renewing_until bigint
);
