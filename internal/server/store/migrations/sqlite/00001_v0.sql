-- +goose Up
-- The schema that the program created before it stored schema versions. A file from that time already has these tables.
CREATE TABLE IF NOT EXISTS workload_instances (
    id BIGINT NOT NULL PRIMARY KEY, createdat TEXT NOT NULL, updatedat TEXT NOT NULL, deletedat TEXT,
    name TEXT NOT NULL, status TEXT, reconciled BOOLEAN
);
CREATE TABLE IF NOT EXISTS helm_workload_instances (
    id BIGINT NOT NULL PRIMARY KEY, createdat TEXT NOT NULL, updatedat TEXT NOT NULL, deletedat TEXT,
    name TEXT NOT NULL, status TEXT, reconciled BOOLEAN
);
CREATE TABLE IF NOT EXISTS workload_resource_instances (
    id BIGINT NOT NULL PRIMARY KEY, createdat TEXT NOT NULL, updatedat TEXT NOT NULL, deletedat TEXT,
    jsondefinition TEXT NOT NULL,
    workloadinstanceid BIGINT NOT NULL REFERENCES workload_instances (id),
    lastoperation TEXT, runtimedefinition TEXT, reconciled BOOLEAN, scheduledfordeletion TEXT
);
CREATE TABLE IF NOT EXISTS workload_events (
    id BIGINT NOT NULL PRIMARY KEY, createdat TEXT NOT NULL, updatedat TEXT NOT NULL, deletedat TEXT,
    runtimeeventuid TEXT NOT NULL, type TEXT NOT NULL, reason TEXT NOT NULL, message TEXT NOT NULL,
    timestamp TEXT NOT NULL,
    workloadinstanceid BIGINT REFERENCES workload_instances (id),
    workloadresourceinstanceid BIGINT REFERENCES workload_resource_instances (id),
    helmworkloadinstanceid BIGINT REFERENCES helm_workload_instances (id)
);
