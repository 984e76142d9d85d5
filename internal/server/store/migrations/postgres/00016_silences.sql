-- +goose Up
-- When the agents of clusters did not report, from the last heartbeat on. The end is NULL until a cluster reports again.
CREATE TABLE silences (
    clusteruid TEXT NOT NULL,
    startedat BIGINT NOT NULL,
    endedat BIGINT,
    PRIMARY KEY (clusteruid, startedat)
);
CREATE INDEX silences_endedat ON silences (endedat);
INSERT INTO silences (clusteruid, startedat) SELECT uid, heardat FROM clusters WHERE silent;
