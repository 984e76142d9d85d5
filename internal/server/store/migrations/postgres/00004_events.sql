-- +goose Up
-- Most Events are of no Helm workload and of no listed resource: what has none is not in its index. And the timelines'
-- count their Events without reading them: each is on another page.
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
