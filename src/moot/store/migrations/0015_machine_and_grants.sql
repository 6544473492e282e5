-- Changing the machine needs a scope of its own, which only its owner's tokens can have. Their tokens so far could do so with `admin`.
UPDATE token SET scopes = scopes || ' machine' WHERE owner_id = 'local' AND ' ' || scopes || ' ' LIKE '% admin %';
-- The root of another user's project is the folder of the machine that this user gets. So far, users could set it themselves.
UPDATE project SET root_path = NULL WHERE owner_id <> 'local';
-- What a person allowed for the rest of a conversation. So far it was in the settings, which clients can change.
CREATE TABLE permission_grant (
    conversation INTEGER NOT NULL REFERENCES conversation (no),
    tool TEXT NOT NULL,
    match TEXT NOT NULL,
    granted_at INTEGER NOT NULL,
    granted_by TEXT NOT NULL
) STRICT;
CREATE INDEX permission_grant_conversation ON permission_grant (conversation);
INSERT INTO permission_grant (conversation, tool, match, granted_at, granted_by)
    SELECT no, value ->> 'tool', value ->> 'match', coalesce(CAST(value ->> 'at' AS INTEGER), 0), coalesce(value ->> 'by', 'user')
    FROM (
        SELECT c.no, g.key, CASE g.type WHEN 'object' THEN g.value ELSE '{}' END AS value
        FROM (
            SELECT no, CASE json_valid(CAST(settings AS TEXT)) WHEN 1 THEN CAST(settings AS TEXT) ELSE '{}' END AS settings
            FROM conversation
        ) AS c, json_each(c.settings, '$.grants') AS g
    )
    WHERE typeof(value ->> 'tool') = 'text' AND typeof(value ->> 'match') = 'text'
    ORDER BY no, key;
UPDATE conversation SET settings = CAST(json_remove(CAST(settings AS TEXT), '$.grants') AS BLOB)
    WHERE CASE json_valid(CAST(settings AS TEXT)) WHEN 1 THEN json_type(CAST(settings AS TEXT), '$.grants') END IS NOT NULL;
-- The model that the last run used. `model` is the one for the next prompt.
ALTER TABLE conversation ADD COLUMN last_model TEXT NOT NULL DEFAULT '';
UPDATE conversation SET last_model = coalesce(
    (SELECT r.model FROM run AS r WHERE r.conversation = conversation.no AND r.ended_at IS NOT NULL AND r.model <> '' ORDER BY r.no DESC LIMIT 1),
    CASE WHEN origin IS NULL THEN '' ELSE model END
);
