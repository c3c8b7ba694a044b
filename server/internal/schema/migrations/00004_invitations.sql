-- +goose Up

-- An invitation has the id of the user that comes from it. record is JSON: it has the hash of a secret, and when it ends.
CREATE TABLE invitations (
    user_id uuid  NOT NULL,
    record  bytea NOT NULL,
    PRIMARY KEY (user_id)
);
