-- +goose Up
-- The UIDs of Events are unique per owner: setEventUniqueness changes the index. Earlier programs expect the old index, and this
-- version keeps them from starting.
SELECT 1;
