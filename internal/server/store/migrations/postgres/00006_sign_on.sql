-- +goose Up
-- The person who logged in, for the secretless token of a single sign-on session.
ALTER TABLE tokens ADD COLUMN subject TEXT NOT NULL DEFAULT '';
