-- +goose Up
-- Orders the newest status first, and an unknown start last.
DROP INDEX workloads_worst;
ALTER TABLE workloads DROP COLUMN sincekey;
ALTER TABLE workloads ADD COLUMN sincekey BIGINT GENERATED ALWAYS AS (-since) VIRTUAL;
CREATE INDEX workloads_worst ON workloads (rank, sincekey, type, id) WHERE deletedat IS NULL;
-- When the reason became what it is. It is 0 without a reason, and for existing rows until their reason changes.
ALTER TABLE workloads ADD COLUMN causesince BIGINT NOT NULL DEFAULT 0;
