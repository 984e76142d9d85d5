-- +goose Up
-- The size of the cluster's definitions and objects, for its quota.
ALTER TABLE clusters ADD COLUMN storedbytes BIGINT NOT NULL DEFAULT 0;
UPDATE clusters SET storedbytes =
    (SELECT COALESCE(SUM(256 + COALESCE(octet_length(d.uid), 0) + COALESCE(octet_length(d.apigroup), 0)
        + COALESCE(octet_length(d.apiversion), 0) + COALESCE(octet_length(d.kind), 0)
        + COALESCE(octet_length(d.namespace), 0) + COALESCE(octet_length(d.name), 0)
        + COALESCE(octet_length(d.operation), 0) + COALESCE(octet_length(d.current), 0)
        + COALESCE(octet_length(d.previous), 0)), 0)
        FROM definitions d WHERE d.clusteruid = clusters.uid)
    + (SELECT COALESCE(SUM(256 + COALESCE(octet_length(o.key), 0) + COALESCE(octet_length(o.uid), 0)
        + COALESCE(octet_length(o.apigroup), 0) + COALESCE(octet_length(o.apiversion), 0)
        + COALESCE(octet_length(o.kind), 0) + COALESCE(octet_length(o.namespace), 0)
        + COALESCE(octet_length(o.name), 0) + COALESCE(octet_length(o.owner), 0)
        + COALESCE(octet_length(o.state), 0) + COALESCE(octet_length(o.health), 0)
        + COALESCE(octet_length(o.reason), 0) + COALESCE(octet_length(o.cause), 0)), 0)
        FROM workloads w CROSS JOIN objects o
        WHERE w.clusteruid = clusters.uid AND w.deletedat IS NULL AND o.type = w.type AND o.id = w.id);
