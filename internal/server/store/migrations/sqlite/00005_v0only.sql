-- +goose Up
-- True if the agent's last report came by v0. v0 has no heartbeat, so such a cluster is never marked silent.
ALTER TABLE clusters ADD COLUMN v0only BOOLEAN NOT NULL DEFAULT FALSE;
