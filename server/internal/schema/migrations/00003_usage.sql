-- +goose Up

-- What is kept of requests in local mode: nothing else. id is random, so that a repeated write adds nothing.
CREATE TABLE usage (
    user_id uuid        NOT NULL,
    id      uuid        NOT NULL,
    role    text        NOT NULL,
    at      timestamptz NOT NULL,
    tokens  bigint      NOT NULL,
    PRIMARY KEY (user_id, id)
);
