-- +goose Up
-- Renewable tokens. Tokens from before this migration are not renewable. renewedat is NULL until the first renewal, which keeps the
-- hash of the replaced secret until previousexpiresat.
ALTER TABLE tokens ADD COLUMN renewable BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE tokens ADD COLUMN renewedat BIGINT;
ALTER TABLE tokens ADD COLUMN previoushash BLOB;
ALTER TABLE tokens ADD COLUMN previousexpiresat BIGINT;
CREATE UNIQUE INDEX tokens_previoushash ON tokens (previoushash);
