-- +goose Up
-- The records that wait for export as OTLP logs, oldest first. eventid is the row of an Event, and at its updatedat; a row without eventid is a
-- change of the status of a workload. seq is never used again. Triggers add the rows: see setLogQueue.
CREATE TABLE log_queue (
    seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at BIGINT NOT NULL,
    type TEXT NOT NULL,
    id BIGINT NOT NULL,
    eventid BIGINT,
    changedat BIGINT NOT NULL DEFAULT 0,
    status TEXT NOT NULL DEFAULT '',
    previous TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '',
    cause TEXT NOT NULL DEFAULT ''
);
