-- A database as the program made it before it kept versions of its schema, with rows of all objects: deleted ones, times
-- of nanoseconds and of the years 0 and 9999, events without a UID. Written by that program; not to be changed.
BEGIN TRANSACTION;
CREATE TABLE helm_workload_instances (id BIGINT NOT NULL PRIMARY KEY, createdat TEXT NOT NULL, updatedat TEXT NOT NULL, deletedat TEXT, name TEXT NOT NULL, status TEXT, reconciled BOOLEAN);
INSERT INTO "helm_workload_instances" VALUES(1229672654253452505,'2026-11-22T08:38:32.943551122Z','2026-11-22T08:38:32.943551122Z',NULL,'chart','Unhealthy',NULL);
INSERT INTO "helm_workload_instances" VALUES(1229672654253714649,'2026-11-22T08:38:32.943631692Z','2026-11-22T08:38:32.943631692Z','2026-11-22T08:38:33.028277385Z','old chart',NULL,1);
CREATE TABLE workload_events (id BIGINT NOT NULL PRIMARY KEY, createdat TEXT NOT NULL, updatedat TEXT NOT NULL, deletedat TEXT, runtimeeventuid TEXT NOT NULL, type TEXT NOT NULL, reason TEXT NOT NULL, message TEXT NOT NULL, timestamp TEXT NOT NULL, workloadinstanceid BIGINT REFERENCES workload_instances (id), workloadresourceinstanceid BIGINT REFERENCES workload_resource_instances (id), helmworkloadinstanceid BIGINT REFERENCES helm_workload_instances (id));
INSERT INTO "workload_events" VALUES(1229672654288973017,'2026-11-22T08:38:32.954393598Z','2026-11-22T08:38:33.028581001Z',NULL,'uid-1','Normal','Created','changed','2026-01-02T03:04:05.123456789Z',1229672654252141785,1229672654253845721,NULL);
INSERT INTO "workload_events" VALUES(1229672654289988825,'2026-11-22T08:38:32.954703856Z','2026-11-22T08:38:32.954703856Z',NULL,'uid-2','Warning','BackOff','second; -- ''quoted''','2026-01-02T03:04:05.000000000Z',NULL,NULL,1229672654253452505);
INSERT INTO "workload_events" VALUES(1229672654290578649,'2026-11-22T08:38:32.954887559Z','2026-11-22T08:38:32.954887559Z',NULL,'','Normal','','','0001-01-01T00:00:00.000000000Z',1229672654252960985,NULL,NULL);
INSERT INTO "workload_events" VALUES(1229672654291070169,'2026-11-22T08:38:32.955035565Z','2026-11-22T08:38:32.955035565Z',NULL,'','Normal','','again','9999-12-31T23:59:59.999999999Z',1229672654252960985,1229672654288481497,NULL);
INSERT INTO "workload_events" VALUES(1229672654291397849,'2026-11-22T08:38:32.955132746Z','2026-11-22T08:38:32.955132746Z','2026-11-22T08:38:32.955223375Z','uid-gone','Normal','Pulled','x','0000-01-01T00:00:00.000000001Z',1229672654253157593,1229672654288743641,NULL);
INSERT INTO "workload_events" VALUES(1229672654531620057,'2026-11-22T08:38:33.028445228Z','2026-11-22T08:38:33.028445228Z',NULL,'uid-gone','Normal','Pulled','the UID of a deleted one is free','2026-01-02T03:04:05.600000000Z',1229672654252141785,NULL,NULL);
CREATE TABLE workload_instances (id BIGINT NOT NULL PRIMARY KEY, createdat TEXT NOT NULL, updatedat TEXT NOT NULL, deletedat TEXT, name TEXT NOT NULL, status TEXT, reconciled BOOLEAN);
INSERT INTO "workload_instances" VALUES(1229672654252141785,'2026-11-22T08:38:32.943145636Z','2026-11-22T08:38:32.943145636Z',NULL,'web','Healthy',1);
INSERT INTO "workload_instances" VALUES(1229672654252960985,'2026-11-22T08:38:32.943406182Z','2026-11-22T08:38:32.943406182Z',NULL,'wëb 2',NULL,NULL);
INSERT INTO "workload_instances" VALUES(1229672654253157593,'2026-11-22T08:38:32.943466254Z','2026-11-22T08:38:32.943466254Z','2026-11-22T08:38:33.027806567Z','gone','Down',0);
INSERT INTO "workload_instances" VALUES(1229672654253321433,'2026-11-22T08:38:32.943509565Z','2026-11-22T08:38:32.943509565Z',NULL,'odd','Sideways',NULL);
CREATE TABLE workload_resource_instances (id BIGINT NOT NULL PRIMARY KEY, createdat TEXT NOT NULL, updatedat TEXT NOT NULL, deletedat TEXT, jsondefinition TEXT NOT NULL, workloadinstanceid BIGINT NOT NULL REFERENCES workload_instances (id), lastoperation TEXT, runtimedefinition TEXT, reconciled BOOLEAN, scheduledfordeletion TEXT);
INSERT INTO "workload_resource_instances" VALUES(1229672654253845721,'2026-11-22T08:38:32.943673881Z','2026-11-22T08:38:32.943673881Z',NULL,'{"kind":"ConfigMap"}',1229672654252141785,'MODIFIED','{"data":{"a":"1; it''s"},"kind":"ConfigMap"}',1,NULL);
INSERT INTO "workload_resource_instances" VALUES(1229672654288481497,'2026-11-22T08:38:32.954240492Z','2026-11-22T08:38:32.954240492Z',NULL,'{"kind":"Deployment"}',1229672654252141785,NULL,NULL,NULL,'2026-03-01T00:00:00.000000001Z');
INSERT INTO "workload_resource_instances" VALUES(1229672654288743641,'2026-11-22T08:38:32.954320692Z','2026-11-22T08:38:32.954320692Z','2026-11-22T08:38:32.955374517Z','{}',1229672654253157593,'DELETED','{}',0,'1969-12-31T23:59:59.999999999Z');
CREATE INDEX workload_resource_instances_workloadinstanceid ON workload_resource_instances (workloadinstanceid, id);
CREATE UNIQUE INDEX workload_events_runtimeeventuid ON workload_events (runtimeeventuid) WHERE deletedat IS NULL AND runtimeeventuid <> '';
CREATE INDEX workload_events_workloadinstanceid ON workload_events (workloadinstanceid, id);
CREATE INDEX workload_events_workloadresourceinstanceid ON workload_events (workloadresourceinstanceid, id);
CREATE INDEX workload_events_helmworkloadinstanceid ON workload_events (helmworkloadinstanceid, id);
COMMIT;
