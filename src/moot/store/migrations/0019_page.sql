-- The list of conversations by agent and model, and without those that programs created by calling `/v1`.
ALTER TABLE conversation ADD COLUMN is_call INTEGER NOT NULL DEFAULT 0;    -- 1 = created by a call of `/v1`
UPDATE conversation SET is_call = 1 WHERE no IN (
    SELECT conversation FROM run WHERE no IN (SELECT min(no) FROM run GROUP BY conversation)
        AND json_type(CAST(settings AS TEXT), '$.served') = 'object'
);
CREATE TRIGGER run_called AFTER INSERT ON run WHEN json_type(CAST(new.settings AS TEXT), '$.served') = 'object' BEGIN
    UPDATE conversation SET is_call = 1
        WHERE no = new.conversation AND NOT EXISTS (SELECT 1 FROM run WHERE conversation = new.conversation AND no <> new.no);
END;
CREATE INDEX conversation_call ON conversation (is_call, updated_at, deleted_at, archived_at, owner_id);
CREATE INDEX conversation_model ON conversation (iif(model = '', last_model, model), updated_at);
CREATE INDEX conversation_agent ON conversation (
    iif(
        agent = 'default' AND origin IS NOT NULL,
        coalesce(
            json_extract(CAST(origin AS TEXT), '$.agent'), json_extract(CAST(origin AS TEXT), '$.program'),
            json_extract(CAST(origin AS TEXT), '$.format'), agent
        ),
        agent
    ),
    updated_at
);
DROP INDEX conversation_project;
CREATE INDEX conversation_project ON conversation (project_id, updated_at);
