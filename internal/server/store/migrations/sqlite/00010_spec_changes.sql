-- +goose Up
-- The digest of the current spec, and when it was first received. Both are unknown for existing definitions: the digest until their
-- next report, the time until their next change.
ALTER TABLE definitions ADD COLUMN specdigest TEXT;
ALTER TABLE definitions ADD COLUMN changedat BIGINT;
