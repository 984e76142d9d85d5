-- +goose Up
-- The keys for sorting and searching the lists. namekey is the start of the name with ASCII letters in lower case, because v0
-- does not limit the length of a name.
ALTER TABLE workloads ADD COLUMN namekey TEXT GENERATED ALWAYS AS (substr(lower(name), 1, 64)) VIRTUAL;
-- Orders the longest-lasting status first, and an unknown start last.
ALTER TABLE workloads ADD COLUMN sincekey BIGINT
    GENERATED ALWAYS AS (CASE since WHEN 0 THEN 9223372036854775807 ELSE since END) VIRTUAL;
ALTER TABLE workloads ADD COLUMN search TEXT
    GENERATED ALWAYS AS (lower(name || char(31) || reason || char(31) || cause)) VIRTUAL;
ALTER TABLE clusters ADD COLUMN namekey TEXT GENERATED ALWAYS AS (lower(name)) VIRTUAL;

DROP INDEX IF EXISTS workloads_rank;
DROP INDEX IF EXISTS workloads_name;
DROP INDEX IF EXISTS workloads_clusteruid;

CREATE INDEX workloads_worst ON workloads (rank, sincekey, type, id) WHERE deletedat IS NULL;
CREATE INDEX workloads_name ON workloads (namekey, type, id) WHERE deletedat IS NULL;
CREATE INDEX workloads_cluster ON workloads (clusteruid, namekey, type, id) WHERE deletedat IS NULL;
-- Covers the counts. Without deletedat in the index, SQLite reads it from the row.
CREATE INDEX workloads_counts ON workloads (rank, type, deletedat) WHERE deletedat IS NULL;
-- Substring search reads all texts. This index stores them computed, and without the rest of the rows.
CREATE INDEX workloads_search ON workloads (rank, type, clusteruid, search, deletedat) WHERE deletedat IS NULL;

CREATE UNIQUE INDEX clusters_name ON clusters (namekey, uid);
CREATE INDEX objects_gone ON objects (type, id, goneat) WHERE goneat IS NOT NULL;
