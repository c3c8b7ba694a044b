-- +goose Up

-- One row for each user. A take-over increments fence. Each change that is committed asynchronously increments ops.
CREATE TABLE owners (
    user_id uuid   NOT NULL,
    owner   text   NOT NULL,
    fence   bigint NOT NULL,
    ops     bigint NOT NULL,
    PRIMARY KEY (user_id)
) WITH (fillfactor = 50);

-- The wrapped keys of a user. The row of the user 0 checks the master key.
CREATE TABLE keys (
    user_id uuid  NOT NULL,
    content bytea NOT NULL,
    names   bytea NOT NULL,
    PRIMARY KEY (user_id)
);

-- The tree. The root is node 1. Folder 0 has what was removed while it was open.
CREATE TABLE entries (
    user_id uuid    NOT NULL,
    parent  bigint  NOT NULL,
    name    bytea   NOT NULL,
    node    bigint  NOT NULL,
    folder  boolean NOT NULL,
    PRIMARY KEY (user_id, parent, name)
);

-- mtime is in nanoseconds since 1970.
CREATE TABLE nodes (
    user_id uuid   NOT NULL,
    node    bigint NOT NULL,
    size    bigint NOT NULL,
    mtime   bigint NOT NULL,
    PRIMARY KEY (user_id, node)
) WITH (fillfactor = 80);

-- The content of a file, up to its size: where extents overlap, the newest counts. An extent of one byte and a larger
-- size is that byte repeated.
CREATE TABLE extents (
    user_id uuid   NOT NULL,
    node    bigint NOT NULL,
    n       bigint NOT NULL,
    off     bigint NOT NULL,
    size    bigint NOT NULL,
    data    bytea  NOT NULL,
    PRIMARY KEY (user_id, node, n)
);
ALTER TABLE extents ALTER COLUMN data SET STORAGE EXTERNAL;
