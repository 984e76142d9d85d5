-- +goose Up
-- The keys for sorting and searching the lists. namekey is the start of the name in lower case, because v0 does not limit the
-- length of a name and an index does. Unlike lower, translate does not depend on the database's locale.
ALTER TABLE workloads ADD COLUMN namekey TEXT NOT NULL GENERATED ALWAYS AS
    (translate(substr(name, 1, 64), 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')) STORED;
-- Orders the longest-lasting status first, and an unknown start last.
ALTER TABLE workloads ADD COLUMN sincekey BIGINT NOT NULL GENERATED ALWAYS AS
    (CASE since WHEN 0 THEN 9223372036854775807 ELSE since END) STORED;
ALTER TABLE workloads ADD COLUMN search TEXT NOT NULL GENERATED ALWAYS AS
    (translate(name || chr(31) || reason || chr(31) || cause, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')) STORED;
ALTER TABLE clusters ADD COLUMN namekey TEXT NOT NULL GENERATED ALWAYS AS
    (translate(name, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')) STORED;

DROP INDEX IF EXISTS workloads_rank;
DROP INDEX IF EXISTS workloads_name;
DROP INDEX IF EXISTS workloads_clusteruid;

CREATE INDEX workloads_worst ON workloads (rank, sincekey, type, id) WHERE deletedat IS NULL;
CREATE INDEX workloads_name ON workloads (namekey, type, id) WHERE deletedat IS NULL;
CREATE INDEX workloads_cluster ON workloads (clusteruid, namekey, type, id) WHERE deletedat IS NULL;
-- The columns have few values, so deduplication makes this index far smaller than the table.
CREATE INDEX workloads_counts ON workloads (rank, type) WHERE deletedat IS NULL;

CREATE UNIQUE INDEX clusters_name ON clusters (namekey, uid);
CREATE INDEX objects_gone ON objects (type, id, goneat) WHERE goneat IS NOT NULL;

-- Substring search uses trigrams. If the extension is not installed or not permitted, a search reads all rows, which is slower.
-- +goose StatementBegin
DO $$
BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE INDEX workloads_search ON workloads USING gin (search gin_trgm_ops) WHERE deletedat IS NULL;
EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_file OR undefined_object THEN
    RAISE NOTICE 'workloads are searched without an index: the extension pg_trgm cannot be used';
END
$$;
-- +goose StatementEnd
