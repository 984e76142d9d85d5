-- +goose Up
-- Times become microseconds since 1970, which all dialects compare and index equally. They were texts of a fixed width,
-- 2006-01-02T15:04:05.000000000Z, whose last three digits are dropped. In SQLite, a column gets another type only through a new
-- table. migrate.go disables foreign keys before this migration, and checks them after it.
CREATE TABLE new_workload_instances (
    id BIGINT NOT NULL PRIMARY KEY, createdat BIGINT NOT NULL, updatedat BIGINT NOT NULL, deletedat BIGINT,
    name TEXT NOT NULL, status TEXT, reconciled BOOLEAN
);
CREATE TABLE new_helm_workload_instances (
    id BIGINT NOT NULL PRIMARY KEY, createdat BIGINT NOT NULL, updatedat BIGINT NOT NULL, deletedat BIGINT,
    name TEXT NOT NULL, status TEXT, reconciled BOOLEAN
);
CREATE TABLE new_workload_resource_instances (
    id BIGINT NOT NULL PRIMARY KEY, createdat BIGINT NOT NULL, updatedat BIGINT NOT NULL, deletedat BIGINT,
    jsondefinition TEXT NOT NULL,
    workloadinstanceid BIGINT NOT NULL REFERENCES workload_instances (id),
    lastoperation TEXT, runtimedefinition TEXT, reconciled BOOLEAN, scheduledfordeletion BIGINT,
    -- The object of the runtime definition, and its version.
    objectuid TEXT, objectversion BIGINT, objectdeleted BOOLEAN
);
CREATE TABLE new_workload_events (
    id BIGINT NOT NULL PRIMARY KEY, createdat BIGINT NOT NULL, updatedat BIGINT NOT NULL, deletedat BIGINT,
    runtimeeventuid TEXT NOT NULL, type TEXT NOT NULL, reason TEXT NOT NULL, message TEXT NOT NULL,
    timestamp BIGINT NOT NULL,
    workloadinstanceid BIGINT REFERENCES workload_instances (id),
    workloadresourceinstanceid BIGINT REFERENCES workload_resource_instances (id),
    helmworkloadinstanceid BIGINT REFERENCES helm_workload_instances (id),
    -- Fields that v0 does not have. objectversion is 0 if v0 created the row.
    clusteruid TEXT, objectversion BIGINT NOT NULL DEFAULT 0,
    involvedgroup TEXT, involvedversion TEXT, involvedkind TEXT, involvednamespace TEXT, involvedname TEXT,
    involveduid TEXT, count BIGINT, firsttimestamp BIGINT, gap TEXT
);

INSERT INTO new_workload_instances (id, createdat, updatedat, deletedat, name, status, reconciled)
SELECT id,
    CAST(strftime('%s', substr(createdat, 1, 19)) AS INTEGER) * 1000000 + CAST(substr(createdat, 21, 6) AS INTEGER),
    CAST(strftime('%s', substr(updatedat, 1, 19)) AS INTEGER) * 1000000 + CAST(substr(updatedat, 21, 6) AS INTEGER),
    CAST(strftime('%s', substr(deletedat, 1, 19)) AS INTEGER) * 1000000 + CAST(substr(deletedat, 21, 6) AS INTEGER),
    name, status, reconciled
FROM workload_instances;
INSERT INTO new_helm_workload_instances (id, createdat, updatedat, deletedat, name, status, reconciled)
SELECT id,
    CAST(strftime('%s', substr(createdat, 1, 19)) AS INTEGER) * 1000000 + CAST(substr(createdat, 21, 6) AS INTEGER),
    CAST(strftime('%s', substr(updatedat, 1, 19)) AS INTEGER) * 1000000 + CAST(substr(updatedat, 21, 6) AS INTEGER),
    CAST(strftime('%s', substr(deletedat, 1, 19)) AS INTEGER) * 1000000 + CAST(substr(deletedat, 21, 6) AS INTEGER),
    name, status, reconciled
FROM helm_workload_instances;
INSERT INTO new_workload_resource_instances (id, createdat, updatedat, deletedat, jsondefinition, workloadinstanceid,
    lastoperation, runtimedefinition, reconciled, scheduledfordeletion)
SELECT id,
    CAST(strftime('%s', substr(createdat, 1, 19)) AS INTEGER) * 1000000 + CAST(substr(createdat, 21, 6) AS INTEGER),
    CAST(strftime('%s', substr(updatedat, 1, 19)) AS INTEGER) * 1000000 + CAST(substr(updatedat, 21, 6) AS INTEGER),
    CAST(strftime('%s', substr(deletedat, 1, 19)) AS INTEGER) * 1000000 + CAST(substr(deletedat, 21, 6) AS INTEGER),
    jsondefinition, workloadinstanceid, lastoperation, runtimedefinition, reconciled,
    CAST(strftime('%s', substr(scheduledfordeletion, 1, 19)) AS INTEGER) * 1000000 + CAST(substr(scheduledfordeletion, 21, 6) AS INTEGER)
FROM workload_resource_instances;
INSERT INTO new_workload_events (id, createdat, updatedat, deletedat, runtimeeventuid, type, reason, message, timestamp,
    workloadinstanceid, workloadresourceinstanceid, helmworkloadinstanceid)
SELECT id,
    CAST(strftime('%s', substr(createdat, 1, 19)) AS INTEGER) * 1000000 + CAST(substr(createdat, 21, 6) AS INTEGER),
    CAST(strftime('%s', substr(updatedat, 1, 19)) AS INTEGER) * 1000000 + CAST(substr(updatedat, 21, 6) AS INTEGER),
    CAST(strftime('%s', substr(deletedat, 1, 19)) AS INTEGER) * 1000000 + CAST(substr(deletedat, 21, 6) AS INTEGER),
    runtimeeventuid, type, reason, message,
    CAST(strftime('%s', substr(timestamp, 1, 19)) AS INTEGER) * 1000000 + CAST(substr(timestamp, 21, 6) AS INTEGER),
    workloadinstanceid, workloadresourceinstanceid, helmworkloadinstanceid
FROM workload_events;

DROP TABLE workload_events;
DROP TABLE workload_resource_instances;
DROP TABLE helm_workload_instances;
DROP TABLE workload_instances;
ALTER TABLE new_workload_instances RENAME TO workload_instances;
ALTER TABLE new_helm_workload_instances RENAME TO helm_workload_instances;
ALTER TABLE new_workload_resource_instances RENAME TO workload_resource_instances;
ALTER TABLE new_workload_events RENAME TO workload_events;

-- For the lists of v0, which are ordered by id. The unique index on runtimeeventuid depends on --strict-v0: see
-- setEventUniqueness.
CREATE INDEX workload_resource_instances_workloadinstanceid ON workload_resource_instances (workloadinstanceid, id);
CREATE INDEX workload_events_workloadinstanceid ON workload_events (workloadinstanceid, id);
CREATE INDEX workload_events_workloadresourceinstanceid ON workload_events (workloadresourceinstanceid, id);
CREATE INDEX workload_events_helmworkloadinstanceid ON workload_events (helmworkloadinstanceid, id);

-- For timelines, and for pruning by age and by count.
CREATE INDEX workload_events_timeline ON workload_events (workloadinstanceid, timestamp, id);
CREATE INDEX workload_events_helm_timeline ON workload_events (helmworkloadinstanceid, timestamp, id);
CREATE INDEX workload_events_nobody ON workload_events (timestamp, id)
    WHERE workloadinstanceid IS NULL AND helmworkloadinstanceid IS NULL;

-- Few rows are deleted at a time, and pruning finds them by age.
CREATE INDEX workload_instances_deletedat ON workload_instances (deletedat) WHERE deletedat IS NOT NULL;
CREATE INDEX helm_workload_instances_deletedat ON helm_workload_instances (deletedat) WHERE deletedat IS NOT NULL;
CREATE INDEX workload_resource_instances_deletedat ON workload_resource_instances (deletedat) WHERE deletedat IS NOT NULL;
CREATE INDEX workload_events_deletedat ON workload_events (deletedat) WHERE deletedat IS NOT NULL;

CREATE TABLE clusters (
    uid TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL DEFAULT '',
    agentversion TEXT NOT NULL DEFAULT '',
    heardat BIGINT NOT NULL,
    agenttime BIGINT NOT NULL,
    delayseconds REAL NOT NULL DEFAULT 0,
    pending BIGINT NOT NULL DEFAULT 0,
    deadletters BIGINT NOT NULL DEFAULT 0,
    dropped BIGINT NOT NULL DEFAULT 0,
    silent BOOLEAN NOT NULL DEFAULT FALSE,
    changedat BIGINT NOT NULL
);

-- The workload list. since and saidat are 0 if the time is unknown.
CREATE TABLE workloads (
    type TEXT NOT NULL,
    id BIGINT NOT NULL,
    name TEXT NOT NULL,
    clusteruid TEXT,
    said TEXT NOT NULL DEFAULT '',
    saidversion BIGINT NOT NULL DEFAULT 0,
    reason TEXT NOT NULL DEFAULT '',
    cause TEXT NOT NULL DEFAULT '',
    since BIGINT NOT NULL DEFAULT 0,
    saidat BIGINT NOT NULL DEFAULT 0,
    status TEXT NOT NULL DEFAULT 'Unknown',
    rank INTEGER NOT NULL DEFAULT 3,
    silent BOOLEAN NOT NULL DEFAULT FALSE,
    pending BIGINT NOT NULL DEFAULT 0,
    rejected BIGINT NOT NULL DEFAULT 0,
    dropped BIGINT NOT NULL DEFAULT 0,
    treeversion BIGINT NOT NULL DEFAULT 0,
    changedat BIGINT NOT NULL,
    deletedat BIGINT,
    PRIMARY KEY (type, id)
);
CREATE INDEX workloads_rank ON workloads (rank, name, type, id) WHERE deletedat IS NULL;
CREATE INDEX workloads_name ON workloads (name, type, id) WHERE deletedat IS NULL;
CREATE INDEX workloads_since ON workloads (since, type, id) WHERE deletedat IS NULL;
CREATE INDEX workloads_clusteruid ON workloads (clusteruid, name, type, id) WHERE deletedat IS NULL;
CREATE INDEX workloads_changedat ON workloads (changedat, type, id);
CREATE INDEX workloads_deletedat ON workloads (deletedat) WHERE deletedat IS NOT NULL;

-- The trees. key is the uid, or group/kind/namespace/name of a listed object that does not exist.
CREATE TABLE objects (
    type TEXT NOT NULL,
    id BIGINT NOT NULL,
    key TEXT NOT NULL,
    clusteruid TEXT NOT NULL,
    uid TEXT NOT NULL DEFAULT '',
    apigroup TEXT NOT NULL DEFAULT '',
    apiversion TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL DEFAULT '',
    name TEXT NOT NULL,
    owner TEXT NOT NULL DEFAULT '',
    listed BOOLEAN NOT NULL DEFAULT FALSE,
    resourceinstanceid BIGINT NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT '',
    health TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    cause TEXT NOT NULL DEFAULT '',
    since BIGINT NOT NULL DEFAULT 0,
    goneat BIGINT,
    PRIMARY KEY (type, id, key)
);
CREATE INDEX objects_goneat ON objects (goneat) WHERE goneat IS NOT NULL;

CREATE TABLE definitions (
    clusteruid TEXT NOT NULL,
    uid TEXT NOT NULL,
    type TEXT NOT NULL,
    id BIGINT NOT NULL,
    apigroup TEXT NOT NULL DEFAULT '',
    apiversion TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL DEFAULT '',
    name TEXT NOT NULL,
    resourceinstanceid BIGINT NOT NULL DEFAULT 0,
    operation TEXT NOT NULL,
    version BIGINT NOT NULL,
    deleted BOOLEAN NOT NULL DEFAULT FALSE,
    current TEXT,
    previous TEXT,
    at BIGINT NOT NULL,
    previousat BIGINT,
    goneat BIGINT,
    PRIMARY KEY (clusteruid, uid)
);
CREATE INDEX definitions_id ON definitions (type, id);
CREATE INDEX definitions_goneat ON definitions (goneat) WHERE goneat IS NOT NULL;

CREATE TABLE tokens (
    id BIGINT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    clusteruid TEXT NOT NULL DEFAULT '',
    hash BLOB NOT NULL UNIQUE,
    createdat BIGINT NOT NULL,
    expiresat BIGINT,
    revokedat BIGINT,
    usedat BIGINT
);

CREATE TABLE sessions (
    hash BLOB NOT NULL PRIMARY KEY,
    tokenid BIGINT NOT NULL REFERENCES tokens (id),
    createdat BIGINT NOT NULL,
    expiresat BIGINT NOT NULL
);
CREATE INDEX sessions_tokenid ON sessions (tokenid);
CREATE INDEX sessions_expiresat ON sessions (expiresat);

CREATE TABLE audit_records (
    id BIGINT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    principal TEXT NOT NULL,
    role TEXT NOT NULL,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    code INTEGER NOT NULL
);

-- The start of the statuses of existing instances is unknown.
INSERT INTO workloads (type, id, name, said, status, rank, changedat, deletedat)
SELECT 'WorkloadInstance', id, name, COALESCE(status, ''),
    CASE WHEN status IN ('Down', 'Error', 'Unhealthy', 'Reconciling', 'Healthy') THEN status ELSE 'Unknown' END,
    CASE status WHEN 'Down' THEN 0 WHEN 'Error' THEN 1 WHEN 'Unhealthy' THEN 2 WHEN 'Reconciling' THEN 4 WHEN 'Healthy' THEN 5 ELSE 3 END,
    updatedat, deletedat
FROM workload_instances;
INSERT INTO workloads (type, id, name, said, status, rank, changedat, deletedat)
SELECT 'HelmWorkloadInstance', id, name, COALESCE(status, ''),
    CASE WHEN status IN ('Down', 'Error', 'Unhealthy', 'Reconciling', 'Healthy') THEN status ELSE 'Unknown' END,
    CASE status WHEN 'Down' THEN 0 WHEN 'Error' THEN 1 WHEN 'Unhealthy' THEN 2 WHEN 'Reconciling' THEN 4 WHEN 'Healthy' THEN 5 ELSE 3 END,
    updatedat, deletedat
FROM helm_workload_instances;
