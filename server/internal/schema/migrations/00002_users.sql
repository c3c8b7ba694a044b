-- +goose Up

-- record is JSON, as user.json in a folder. It has no conversation, and no token: only what tells whether one is right.
CREATE TABLE users (
    user_id uuid    NOT NULL,
    removed boolean NOT NULL,
    record  bytea   NOT NULL,
    PRIMARY KEY (user_id)
);
