-- When the settings of a project were changed last, in ms.
ALTER TABLE project ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
UPDATE project SET updated_at = created_at;
