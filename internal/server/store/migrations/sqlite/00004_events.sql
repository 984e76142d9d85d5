-- +goose Up
-- Most Events belong to no Helm workload and no listed resource, so partial indexes without them are small. The indexes of
-- the timelines include deletedat, so that a count reads no rows; each row is on another page.
DROP INDEX IF EXISTS workload_events_workloadinstanceid;
DROP INDEX IF EXISTS workload_events_workloadresourceinstanceid;
DROP INDEX IF EXISTS workload_events_helmworkloadinstanceid;
DROP INDEX IF EXISTS workload_events_timeline;
DROP INDEX IF EXISTS workload_events_helm_timeline;

CREATE INDEX workload_events_workloadinstanceid ON workload_events (workloadinstanceid, id) WHERE workloadinstanceid IS NOT NULL;
CREATE INDEX workload_events_workloadresourceinstanceid ON workload_events (workloadresourceinstanceid, id)
    WHERE workloadresourceinstanceid IS NOT NULL;
CREATE INDEX workload_events_helmworkloadinstanceid ON workload_events (helmworkloadinstanceid, id) WHERE helmworkloadinstanceid IS NOT NULL;
CREATE INDEX workload_events_timeline ON workload_events (workloadinstanceid, timestamp, id, deletedat) WHERE workloadinstanceid IS NOT NULL;
CREATE INDEX workload_events_helm_timeline ON workload_events (helmworkloadinstanceid, timestamp, id, deletedat)
    WHERE helmworkloadinstanceid IS NOT NULL;
