-- +goose Up
-- What the lists are sorted and searched by. The start of a name only, in small letters (of ASCII): a key is of bounded
-- size whatever name a v0 client gives.
ALTER TABLE workloads ADD COLUMN namekey TEXT GENERATED ALWAYS AS (substr(lower(name), 1, 64)) VIRTUAL;
-- Longest broken first, not known when last.
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
-- Covers what counts; deletedat is in it because SQLite looks it up in the row otherwise.
CREATE INDEX workloads_counts ON workloads (rank, type, deletedat) WHERE deletedat IS NULL;
-- A part of a text is found by reading all of them: here they are without the rest of their rows, and made already.
CREATE INDEX workloads_search ON workloads (rank, type, clusteruid, search, deletedat) WHERE deletedat IS NULL;

CREATE UNIQUE INDEX clusters_name ON clusters (namekey, uid);
CREATE INDEX objects_gone ON objects (type, id, goneat) WHERE goneat IS NOT NULL;
