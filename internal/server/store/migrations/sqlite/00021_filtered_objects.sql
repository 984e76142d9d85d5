-- +goose Up
-- The number of derived objects that a filter of the agent leaves out of the tree.
ALTER TABLE workloads ADD COLUMN filtered BIGINT NOT NULL DEFAULT 0;
