-- +goose Up
-- Versions are forgotten in this order, a few rows at a time.
CREATE INDEX definitions_workload ON definitions (type, id, clusteruid, uid);
DROP INDEX definitions_id;
