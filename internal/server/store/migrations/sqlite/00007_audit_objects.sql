-- +goose Up
-- The object that a request made, changed or read. All are empty if the request names none.
ALTER TABLE audit_records ADD COLUMN objecttype TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_records ADD COLUMN objectid TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_records ADD COLUMN objectname TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_records ADD COLUMN objectrole TEXT NOT NULL DEFAULT '';

-- For pruning by age.
CREATE INDEX audit_records_at ON audit_records (at);
