-- +goose Up
-- The number of transactions that wrote a part of the tree.
ALTER TABLE workloads ADD COLUMN treewrites BIGINT NOT NULL DEFAULT 0;
