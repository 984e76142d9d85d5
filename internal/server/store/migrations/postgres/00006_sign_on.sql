-- +goose Up
-- Who logged in by single sign-on, of a token that stands for a log-in and that nobody has.
ALTER TABLE tokens ADD COLUMN subject TEXT NOT NULL DEFAULT '';
