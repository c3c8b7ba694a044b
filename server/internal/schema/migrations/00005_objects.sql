-- +goose Up

-- Large content is an object in an object store; data is empty then.
ALTER TABLE extents ADD COLUMN object uuid;
CREATE INDEX extents_object ON extents (object) WHERE object IS NOT NULL;

-- The row of the user 0 says which objects of a bucket are those of this database, and when a sweep last looked at them.
CREATE TABLE buckets (
    user_id uuid        NOT NULL,
    bucket  uuid        NOT NULL,
    swept   timestamptz NOT NULL,
    PRIMARY KEY (user_id)
);

-- Objects that no extent names any more, and since when that is known. user_id is the user 0.
CREATE TABLE orphans (
    user_id uuid        NOT NULL,
    object  uuid        NOT NULL,
    since   timestamptz NOT NULL,
    PRIMARY KEY (user_id, object)
);
