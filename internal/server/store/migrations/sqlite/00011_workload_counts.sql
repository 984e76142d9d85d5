-- +goose Up
-- What the last tree says of a workload: how many of its listed objects and of its Pods there are, how many of them are Healthy, and the
-- namespaces of the listed objects as a JSON array.
ALTER TABLE workloads ADD COLUMN listed BIGINT NOT NULL DEFAULT 0;
ALTER TABLE workloads ADD COLUMN listedhealthy BIGINT NOT NULL DEFAULT 0;
ALTER TABLE workloads ADD COLUMN pods BIGINT NOT NULL DEFAULT 0;
ALTER TABLE workloads ADD COLUMN podshealthy BIGINT NOT NULL DEFAULT 0;
ALTER TABLE workloads ADD COLUMN namespaces TEXT NOT NULL DEFAULT '[]';
UPDATE workloads SET listed = x.listed, listedhealthy = x.listedhealthy, pods = x.pods, podshealthy = x.podshealthy
    FROM (SELECT type, id,
        SUM(CASE WHEN listed THEN 1 ELSE 0 END) AS listed,
        SUM(CASE WHEN listed AND health = 'Healthy' THEN 1 ELSE 0 END) AS listedhealthy,
        SUM(CASE WHEN kind = 'Pod' AND apigroup = '' THEN 1 ELSE 0 END) AS pods,
        SUM(CASE WHEN kind = 'Pod' AND apigroup = '' AND health = 'Healthy' THEN 1 ELSE 0 END) AS podshealthy
        FROM objects WHERE goneat IS NULL GROUP BY type, id) AS x
    WHERE workloads.type = x.type AND workloads.id = x.id;
-- When the API server of the cluster created the object. It is unknown for existing definitions until their next report.
ALTER TABLE definitions ADD COLUMN created BIGINT;
