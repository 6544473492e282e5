-- Keys of conversations and roots of projects are unique for each owner, and bytes are read by those who have put them there.
-- A UNIQUE of a column can't be taken away, so both tables are made anew; numbers that were given stay given.

CREATE TABLE project_anew (
    id TEXT PRIMARY KEY,
    owner_id TEXT NOT NULL REFERENCES user (id),
    name TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    root_path BLOB,                             -- file names are bytes
    context TEXT NOT NULL DEFAULT '',
    rules TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL
) STRICT;
INSERT INTO project_anew (id, owner_id, name, description, root_path, context, rules, created_at)
    SELECT id, owner_id, name, description, root_path, context, rules, created_at FROM project;
DROP TABLE project;
ALTER TABLE project_anew RENAME TO project;
CREATE UNIQUE INDEX project_root ON project (owner_id, root_path) WHERE root_path IS NOT NULL;

CREATE TABLE conversation_anew (
    no INTEGER PRIMARY KEY AUTOINCREMENT,       -- never given twice: the log is keyed by it
    id TEXT NOT NULL UNIQUE,
    owner_id TEXT NOT NULL REFERENCES user (id),
    project_id TEXT NOT NULL REFERENCES project (id),
    key TEXT,
    client_id TEXT,
    title TEXT NOT NULL,
    title_source TEXT NOT NULL,
    agent TEXT NOT NULL,
    agent_type TEXT NOT NULL,
    model TEXT NOT NULL,
    parent_id TEXT,
    parent_tool_call_id TEXT,
    forked_from_id TEXT,
    forked_from_message TEXT,
    directory BLOB NOT NULL,                    -- file names are bytes
    allowed_uris BLOB NOT NULL,                 -- absolute paths, joined by NUL
    is_task_finished INTEGER NOT NULL,
    settings BLOB NOT NULL,
    head_id TEXT,
    origin BLOB,
    message_count INTEGER NOT NULL,
    usage_input INTEGER,
    usage_output INTEGER,
    usage_cache_read INTEGER,
    usage_cache_write INTEGER,
    usage_reasoning INTEGER,
    cost INTEGER,
    unpriced_runs INTEGER NOT NULL,
    context_usage REAL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    archived_at INTEGER,
    deleted_at INTEGER
) STRICT;
INSERT INTO conversation_anew
    SELECT no, id, owner_id, project_id, key, client_id, title, title_source, agent, agent_type, model, parent_id, parent_tool_call_id,
        forked_from_id, forked_from_message, directory, allowed_uris, is_task_finished, settings, head_id, origin, message_count,
        usage_input, usage_output, usage_cache_read, usage_cache_write, usage_reasoning, cost, unpriced_runs, context_usage,
        created_at, updated_at, archived_at, deleted_at
    FROM conversation;
DELETE FROM sqlite_sequence WHERE name = 'conversation_anew';
INSERT INTO sqlite_sequence (name, seq) SELECT 'conversation_anew', seq FROM sqlite_sequence WHERE name = 'conversation';
DROP TABLE conversation;
ALTER TABLE conversation_anew RENAME TO conversation;
CREATE UNIQUE INDEX conversation_key ON conversation (owner_id, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX conversation_client ON conversation (owner_id, client_id) WHERE client_id IS NOT NULL;
CREATE INDEX conversation_recent ON conversation (updated_at, no);
CREATE INDEX conversation_owner ON conversation (owner_id, updated_at, no);
CREATE INDEX conversation_place ON conversation (directory);
CREATE INDEX conversation_project ON conversation (project_id);
CREATE INDEX conversation_title ON conversation (title);
CREATE INDEX conversation_parent ON conversation (parent_id) WHERE parent_id IS NOT NULL;

CREATE TABLE blob_owner (
    sha256 TEXT NOT NULL REFERENCES blob (sha256),
    owner_id TEXT NOT NULL REFERENCES user (id),
    media_type TEXT NOT NULL,                   -- as that owner put it there
    created_at INTEGER NOT NULL,
    uploaded_at INTEGER,                        -- given by a person, not made by a run
    PRIMARY KEY (sha256, owner_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_uploaded ON blob_owner (owner_id) WHERE uploaded_at IS NOT NULL;
INSERT INTO blob_owner (sha256, owner_id, media_type, created_at) SELECT sha256, 'local', media_type, created_at FROM blob;
