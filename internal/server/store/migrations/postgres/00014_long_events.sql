-- +goose Up
-- The long Events of a workload, for their limit. The condition is that of the pruning queries.
CREATE INDEX workload_events_long ON workload_events (workloadinstanceid, timestamp, id)
    WHERE octet_length(message) > 4096 AND workloadinstanceid IS NOT NULL;
CREATE INDEX workload_events_helm_long ON workload_events (helmworkloadinstanceid, timestamp, id)
    WHERE octet_length(message) > 4096 AND helmworkloadinstanceid IS NOT NULL;
