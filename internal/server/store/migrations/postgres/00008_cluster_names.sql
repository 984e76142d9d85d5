-- +goose Up
-- The name of the cluster that an agent's token fixes; empty for none.
ALTER TABLE tokens ADD COLUMN clustername TEXT NOT NULL DEFAULT '';
CREATE INDEX tokens_clustername ON tokens (LOWER(clustername)) WHERE clustername <> '';
