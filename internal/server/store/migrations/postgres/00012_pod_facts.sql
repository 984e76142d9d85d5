-- +goose Up
-- The facts of a Pod as JSON: its node and its containers. It is empty for other objects, and for trees of earlier agents.
ALTER TABLE objects ADD COLUMN pod TEXT NOT NULL DEFAULT '';
