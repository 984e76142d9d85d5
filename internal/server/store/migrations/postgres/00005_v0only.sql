-- +goose Up
-- Whether the cluster's agent was heard by v0 last, which has no heartbeat: such a cluster does not fall silent.
ALTER TABLE clusters ADD COLUMN v0only BOOLEAN NOT NULL DEFAULT FALSE;
