-- The tables of DESIGN section 4 that the store itself needs. Listing times are ms, event times µs, both UTC; JSON is canonical.

CREATE TABLE user (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE token (
    id TEXT PRIMARY KEY,
    owner_id TEXT NOT NULL REFERENCES user (id),
    name TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    used_at INTEGER,
    revoked_at INTEGER
) STRICT;

CREATE TABLE project (
    id TEXT PRIMARY KEY,
    owner_id TEXT NOT NULL REFERENCES user (id),
    name TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    root_path BLOB UNIQUE,                      -- file names are bytes
    context TEXT NOT NULL DEFAULT '',
    rules TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE conversation (
    no INTEGER PRIMARY KEY AUTOINCREMENT,       -- never given twice: the log is keyed by it
    id TEXT NOT NULL UNIQUE,
    owner_id TEXT NOT NULL REFERENCES user (id),
    project_id TEXT NOT NULL REFERENCES project (id),
    key TEXT UNIQUE,
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
CREATE UNIQUE INDEX conversation_client ON conversation (owner_id, client_id) WHERE client_id IS NOT NULL;
CREATE INDEX conversation_recent ON conversation (updated_at, no);
CREATE INDEX conversation_place ON conversation (directory);
CREATE INDEX conversation_project ON conversation (project_id);
CREATE INDEX conversation_title ON conversation (title);
CREATE INDEX conversation_parent ON conversation (parent_id) WHERE parent_id IS NOT NULL;

CREATE TABLE log_head (
    conversation INTEGER PRIMARY KEY REFERENCES conversation (no),
    next_seq INTEGER NOT NULL DEFAULT 1,
    sealed_through INTEGER NOT NULL DEFAULT 0,
    indexed_through INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE message (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    conversation INTEGER NOT NULL REFERENCES conversation (no),
    parent_id TEXT,
    role TEXT NOT NULL,
    parts BLOB NOT NULL,
    metadata BLOB NOT NULL,
    run TEXT,
    status TEXT NOT NULL,
    client_id TEXT,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    folded_through INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    is_indexed INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX message_conversation ON message (conversation);
CREATE UNIQUE INDEX message_client ON message (conversation, client_id) WHERE client_id IS NOT NULL;
CREATE INDEX message_parent ON message (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX message_to_index ON message (conversation, first_seq) WHERE is_indexed = 0;

CREATE TABLE run (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    conversation INTEGER NOT NULL REFERENCES conversation (no),
    message TEXT NOT NULL,
    owner_id TEXT NOT NULL REFERENCES user (id),
    agent TEXT NOT NULL,
    agent_type TEXT NOT NULL,
    agent_session_id TEXT,
    model TEXT NOT NULL,
    trigger TEXT NOT NULL,
    parent_run TEXT,
    status TEXT NOT NULL,
    on_crash TEXT NOT NULL,
    owner TEXT,
    fence INTEGER NOT NULL,
    lease_until INTEGER,
    settings BLOB NOT NULL,
    error BLOB,
    usage BLOB NOT NULL,
    cost INTEGER,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    result_seq INTEGER,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX run_started ON run (conversation) WHERE status IN ('running', 'waiting', 'interrupted');
CREATE INDEX run_open ON run (status, conversation) WHERE status IN ('queued', 'running', 'waiting', 'interrupted');
CREATE INDEX run_conversation ON run (conversation);

CREATE TABLE event (
    id INTEGER PRIMARY KEY,                     -- conversation.no << 32 | seq
    at INTEGER NOT NULL,
    run INTEGER,                                -- run.no
    exchange TEXT,                              -- ':…' = behind the run's id, '=…' = as it is
    kind TEXT NOT NULL,
    chunks BLOB NOT NULL,
    raw BLOB,
    phase TEXT,
    key TEXT,
    body BLOB,
    "check" BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX event_journal ON event (run, phase, key) WHERE key IS NOT NULL;

CREATE TABLE exchange (
    id TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    conversation INTEGER NOT NULL REFERENCES conversation (no),
    purpose TEXT NOT NULL,
    dialect TEXT NOT NULL,
    converter TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    options BLOB NOT NULL,
    request BLOB NOT NULL,
    chunk_format TEXT NOT NULL,
    ended TEXT
) STRICT;
CREATE INDEX exchange_run ON exchange (run);

CREATE TABLE segment (
    conversation INTEGER NOT NULL REFERENCES conversation (no),
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    codec TEXT NOT NULL,                        -- 'zstd'
    dictionary TEXT,
    frames BLOB NOT NULL,                       -- JSON: [[first_seq, last_seq, offset, length], …]
    data BLOB NOT NULL,
    PRIMARY KEY (conversation, first_seq)
) STRICT;

CREATE TABLE translation (
    conversation INTEGER NOT NULL REFERENCES conversation (no),
    converter TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    chunks BLOB NOT NULL,
    PRIMARY KEY (conversation, converter, first_seq)
) STRICT;

CREATE TABLE approval (
    id TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    tool_call TEXT NOT NULL,
    tool TEXT NOT NULL,
    arguments BLOB NOT NULL,
    digest BLOB NOT NULL,
    questions BLOB,
    asked_at INTEGER NOT NULL,
    expires_at INTEGER,
    approved INTEGER,                           -- null = not answered
    option TEXT,
    reason TEXT,
    answered_by TEXT,
    value BLOB,
    answered_at INTEGER,
    used_at INTEGER
) STRICT;
CREATE INDEX approval_run ON approval (run);
CREATE INDEX approval_open ON approval (asked_at) WHERE approved IS NULL;

CREATE TABLE inbox (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    body BLOB,
    at INTEGER NOT NULL,
    taken_at INTEGER
) STRICT;
CREATE INDEX inbox_waiting ON inbox (run, no) WHERE taken_at IS NULL;

CREATE TABLE blob (
    sha256 TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    media_type TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    data BLOB                                   -- null = a file of the blob folder
) STRICT;

CREATE TABLE setting (
    key TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;

CREATE TABLE tally (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT;
CREATE TRIGGER message_added AFTER INSERT ON message BEGIN
    UPDATE tally SET value = value + 1 WHERE name = 'messages';
END;
CREATE TRIGGER message_removed AFTER DELETE ON message BEGIN
    UPDATE tally SET value = value - 1 WHERE name = 'messages';
    UPDATE tally SET value = value - old.is_indexed WHERE name = 'indexed';
END;
CREATE TRIGGER message_indexed AFTER UPDATE OF is_indexed ON message WHEN old.is_indexed <> new.is_indexed BEGIN
    UPDATE tally SET value = value + new.is_indexed - old.is_indexed WHERE name = 'indexed';
END;

CREATE TABLE search (
    no INTEGER PRIMARY KEY,                     -- grows with the message's time, so the newest hits are the last rows
    message TEXT NOT NULL UNIQUE,
    conversation INTEGER NOT NULL REFERENCES conversation (no),
    role TEXT NOT NULL,
    at INTEGER NOT NULL,
    text TEXT NOT NULL
) STRICT;
CREATE INDEX search_conversation ON search (conversation);
CREATE VIRTUAL TABLE search_words USING fts5 (text, content = '', tokenize = 'unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE search_substrings USING fts5 (text, content = '', tokenize = 'trigram');

INSERT INTO tally VALUES ('messages', 0), ('indexed', 0);
INSERT INTO user VALUES ('local', 'local', 0);
INSERT INTO project (id, owner_id, name, created_at) VALUES ('default', 'local', 'default', 0);
