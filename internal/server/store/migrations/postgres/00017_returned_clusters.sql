-- +goose Up
-- When the agent of a silent cluster reported again; NULL if the cluster is not silent, or has not reported.
ALTER TABLE clusters ADD COLUMN returnedat BIGINT;
