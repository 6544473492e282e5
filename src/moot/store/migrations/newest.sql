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
, kind TEXT NOT NULL DEFAULT 'token', expires_at INTEGER) STRICT;
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
, deleted_at INTEGER) STRICT;
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
, awaits TEXT, wake_at INTEGER) STRICT;
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
    chunks BLOB NOT NULL, exchange TEXT NOT NULL DEFAULT '', ending BLOB, made_at INTEGER NOT NULL DEFAULT 0,
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
, parts BLOB, patterns BLOB, edited BLOB, edited_digest BLOB, outside BLOB) STRICT;
CREATE TABLE inbox (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    body BLOB,
    at INTEGER NOT NULL,
    taken_at INTEGER
) STRICT;
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
CREATE TABLE login_code (
    hash BLOB PRIMARY KEY,
    owner_id TEXT NOT NULL REFERENCES user (id),
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE idempotency (
    owner_id TEXT NOT NULL REFERENCES user (id),
    key TEXT NOT NULL,
    request BLOB NOT NULL,                      -- digest of method, path, query and body
    at INTEGER NOT NULL,
    worker TEXT NOT NULL,                       -- who is at it
    status INTEGER,                             -- of the answer; NULL = it is still being made
    headers BLOB,
    body BLOB,
    PRIMARY KEY (owner_id, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE "project" (
    id TEXT PRIMARY KEY,
    owner_id TEXT NOT NULL REFERENCES user (id),
    name TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    root_path BLOB,                             -- file names are bytes
    context TEXT NOT NULL DEFAULT '',
    rules TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL
, last_task INTEGER NOT NULL DEFAULT 0, updated_at INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE "conversation" (
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
, last_model TEXT NOT NULL DEFAULT '', repository BLOB, host TEXT NOT NULL DEFAULT '', is_call INTEGER NOT NULL DEFAULT 0, pinned_at INTEGER, expires_at INTEGER) STRICT;
CREATE TABLE blob_owner (
    sha256 TEXT NOT NULL REFERENCES blob (sha256),
    owner_id TEXT NOT NULL REFERENCES user (id),
    media_type TEXT NOT NULL,                   -- as that owner put it there
    created_at INTEGER NOT NULL,
    uploaded_at INTEGER,                        -- given by a person, not made by a run
    PRIMARY KEY (sha256, owner_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE search (
    no INTEGER PRIMARY KEY,                     -- grows with the message's time, so the newest hits are the last rows
    message INTEGER NOT NULL UNIQUE,            -- message.no
    conversation INTEGER NOT NULL REFERENCES conversation (no),
    at INTEGER NOT NULL,
    cost INTEGER                                -- nano-dollars
) STRICT;
CREATE TABLE search_term (
    no INTEGER PRIMARY KEY,
    term TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE import_conversation (
    owner_id TEXT NOT NULL REFERENCES user (id),
    format TEXT NOT NULL,
    source_id TEXT NOT NULL,
    conversation INTEGER NOT NULL REFERENCES conversation (no) ON DELETE CASCADE,
    version INTEGER NOT NULL,                   -- of the format, as it was last read to its end
    parent TEXT,                                -- source_id of the conversation that it is a part of
    parent_call TEXT,
    head TEXT, copied_from TEXT, rank INTEGER NOT NULL DEFAULT 0, started_at INTEGER NOT NULL DEFAULT 0,                                  -- the message that the shown branch ended with when an import last set it
    PRIMARY KEY (owner_id, format, source_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE import_message (
    conversation INTEGER NOT NULL REFERENCES conversation (no) ON DELETE CASCADE,
    key BLOB NOT NULL,                          -- the message's id in the source; of a record that is no message, NUL and its digest
    digest BLOB NOT NULL,                       -- 16 bytes of BLAKE2b of its raw
    length INTEGER NOT NULL,                    -- of its raw
    message TEXT,
    PRIMARY KEY (conversation, key, digest)
) STRICT, WITHOUT ROWID;
CREATE TABLE import_source (
    owner_id TEXT NOT NULL REFERENCES user (id),
    format TEXT NOT NULL,
    path BLOB NOT NULL,                         -- file names are bytes
    version INTEGER NOT NULL,                   -- of the format that read it
    size INTEGER NOT NULL,
    modified_at INTEGER NOT NULL,               -- ns, as its file system says it
    inode INTEGER NOT NULL,
    read_at INTEGER NOT NULL,
    conversations INTEGER NOT NULL,
    problems INTEGER NOT NULL,
    PRIMARY KEY (owner_id, format, path)
) STRICT, WITHOUT ROWID;
CREATE TABLE forgetting (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,                         -- purge, redact
    begun_at INTEGER NOT NULL,
    done_at INTEGER,
    rest BLOB,                                   -- null once only the file itself is left to be cleaned: it may name what is to be forgotten
    receipt BLOB NOT NULL
) STRICT;
CREATE TABLE written_file (
    path BLOB PRIMARY KEY,                      -- file names are bytes
    kind TEXT NOT NULL,                         -- backup, export
    made_at INTEGER NOT NULL,
    size INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    conversation TEXT                           -- null = all of the store
) STRICT;
CREATE TABLE share (
    id TEXT PRIMARY KEY,
    owner_id TEXT NOT NULL REFERENCES user (id),
    conversation INTEGER NOT NULL REFERENCES conversation (no),
    hash BLOB NOT NULL UNIQUE,                  -- of the secret in the link
    title TEXT NOT NULL,
    page BLOB NOT NULL,                         -- empty once it was revoked or has expired
    size INTEGER NOT NULL,
    policy TEXT NOT NULL,
    left_out BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;
CREATE TABLE answer (
    message INTEGER PRIMARY KEY,                -- message.no
    conversation INTEGER NOT NULL REFERENCES conversation (no),
    at INTEGER NOT NULL,                        -- ms
    agent TEXT NOT NULL,
    model TEXT NOT NULL,
    status TEXT NOT NULL,
    error TEXT NOT NULL,                        -- its kind; empty = none
    steps INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    cost INTEGER,                               -- nano-dollars; null = unknown
    first_ms INTEGER,                           -- to the first that was shown, of its first step; null = not known
    ms INTEGER NOT NULL,                        -- that models worked, of the steps whose time is known
    timed INTEGER NOT NULL,                     -- output tokens of those steps
    context INTEGER NOT NULL                    -- input tokens of the largest step
, lead TEXT NOT NULL DEFAULT '', program TEXT NOT NULL DEFAULT '', calls TEXT, limits TEXT, unpriced INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE answer_tool (
    message INTEGER NOT NULL,                   -- message.no
    tool TEXT NOT NULL,
    calls INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    denied INTEGER NOT NULL,
    ms INTEGER NOT NULL,                        -- of the calls whose time is known
    timed INTEGER NOT NULL,                     -- how many those are
    PRIMARY KEY (message, tool)
) STRICT;
CREATE TABLE tool_day (
    day INTEGER NOT NULL,
    owner_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    calls INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    denied INTEGER NOT NULL,
    ms INTEGER NOT NULL,
    timed INTEGER NOT NULL,
    PRIMARY KEY (day, owner_id, tool)
) STRICT;
CREATE TABLE aside (                            -- model calls that belong to no answer: titles, summaries, pictures
    exchange TEXT PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversation (no),
    at INTEGER NOT NULL,                        -- ms
    purpose TEXT NOT NULL,
    model TEXT NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cost INTEGER
) STRICT;
CREATE TABLE to_count (                         -- answers that came or changed since they were counted
    message INTEGER PRIMARY KEY
) STRICT;
CREATE TABLE search_vector (
    no INTEGER PRIMARY KEY,                     -- search.no, of the answer
    model TEXT NOT NULL,                        -- which weights in which version
    vector BLOB NOT NULL                        -- eight bits for each number; empty = there was nothing to read
) STRICT;
CREATE TABLE permission_grant (
    conversation INTEGER NOT NULL REFERENCES conversation (no),
    tool TEXT NOT NULL,
    match TEXT NOT NULL,
    granted_at INTEGER NOT NULL,
    granted_by TEXT NOT NULL
) STRICT;
CREATE TABLE compaction (
    conversation INTEGER NOT NULL REFERENCES conversation (no),
    through TEXT NOT NULL,
    summary TEXT NOT NULL,
    plan TEXT NOT NULL,
    exchange TEXT,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (conversation, through)
) STRICT;
CREATE TABLE knowledge_source (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    owner_id TEXT NOT NULL,
    project_id TEXT NOT NULL,                   -- empty = searched in all conversations of the owner
    kind TEXT NOT NULL,                         -- added, upload, folder
    path TEXT NOT NULL,
    added_at INTEGER NOT NULL,                  -- ms
    UNIQUE (owner_id, project_id, kind, path)
) STRICT;
CREATE TABLE knowledge_document (
    no INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES knowledge_source (no),
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    changed_ns INTEGER NOT NULL,
    digest BLOB NOT NULL,                       -- SHA-256 of the content
    problem TEXT NOT NULL,                      -- why it could not be read; empty = indexed
    UNIQUE (source, path)
) STRICT;
CREATE TABLE knowledge_chunk (
    no INTEGER PRIMARY KEY,
    document INTEGER NOT NULL REFERENCES knowledge_document (no),
    place TEXT NOT NULL,
    heading TEXT NOT NULL,
    text TEXT NOT NULL
) STRICT;
CREATE TABLE knowledge_vector (
    no INTEGER PRIMARY KEY,                     -- knowledge_chunk.no
    model TEXT NOT NULL,                        -- which weights in which version
    vector BLOB NOT NULL
) STRICT;
CREATE VIRTUAL TABLE knowledge_words USING fts5 (path, heading, text, content = '', tokenize = 'unicode61 remove_diacritics 2');
CREATE TABLE cron_job (
    no INTEGER PRIMARY KEY,
    owner_id TEXT NOT NULL,
    name TEXT NOT NULL,
    settings BLOB,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,  -- µs
    seen_at INTEGER NOT NULL,  -- ms; the last instant that was handled
    paused_at INTEGER,
    schedule TEXT NOT NULL DEFAULT '',  -- of a job in the configuration
    UNIQUE (owner_id, name)
);
CREATE TABLE cron_run (
    no INTEGER PRIMARY KEY,
    owner_id TEXT NOT NULL,
    job TEXT NOT NULL,
    at INTEGER NOT NULL,
    status TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    missed INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 1,
    run TEXT,
    conversation TEXT,
    settled_at INTEGER,
    UNIQUE (owner_id, job, at)
);
CREATE TABLE task (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    status TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    tags TEXT NOT NULL,                         -- JSON list
    author TEXT NOT NULL,
    assignee TEXT NOT NULL,
    due TEXT NOT NULL,                          -- ISO date; empty = none
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    comments INTEGER NOT NULL DEFAULT 0,
    UNIQUE (project_id, number)
) STRICT;
CREATE TABLE task_comment (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    task INTEGER NOT NULL REFERENCES task (no),
    author TEXT NOT NULL,
    by_run TEXT,                                -- the run that wrote it; NULL = a person
    text TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;
CREATE TABLE task_change (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    task INTEGER NOT NULL REFERENCES task (no),
    event TEXT NOT NULL,                        -- created, status, updated, commented
    fields TEXT NOT NULL,                       -- JSON list of the changed fields
    before TEXT NOT NULL,                       -- the status before and after
    status TEXT NOT NULL,
    author TEXT NOT NULL,
    by_run TEXT,
    watcher TEXT NOT NULL,                      -- the watcher that started the run; empty = none
    depth INTEGER NOT NULL,                     -- how many runs of watchers led to it
    at INTEGER NOT NULL
) STRICT;
CREATE TABLE task_watcher (
    owner_id TEXT NOT NULL,
    name TEXT NOT NULL,
    since INTEGER NOT NULL,
    PRIMARY KEY (owner_id, name)
) STRICT;
CREATE TABLE task_cursor (
    watcher TEXT NOT NULL,
    task INTEGER NOT NULL REFERENCES task (no),
    through INTEGER NOT NULL,
    last_run TEXT,
    PRIMARY KEY (watcher, task)
) STRICT;
CREATE TABLE task_run (
    no INTEGER PRIMARY KEY,
    watcher TEXT NOT NULL,
    task INTEGER NOT NULL REFERENCES task (no),
    at INTEGER NOT NULL,
    reason TEXT NOT NULL,                       -- why there is no run; empty = there is one
    run TEXT,
    conversation TEXT
) STRICT;
CREATE TABLE webhook_subscription (
    name TEXT PRIMARY KEY,
    events TEXT NOT NULL,  -- JSON array
    in_project TEXT NOT NULL,  -- this and the next two: empty = any
    of_agent TEXT NOT NULL,
    in_conversation TEXT NOT NULL
) STRICT;
CREATE TABLE webhook_delivery (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    webhook TEXT NOT NULL,
    event TEXT NOT NULL,
    at INTEGER NOT NULL,  -- ms
    run TEXT,
    conversation TEXT,
    facts BLOB NOT NULL,
    status TEXT NOT NULL,  -- pending, delivered, failed
    tries INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER,  -- ms; NULL = no further attempt
    reason TEXT NOT NULL DEFAULT '',
    UNIQUE (webhook, id)
) STRICT;
CREATE TABLE channel_answer (
    run TEXT PRIMARY KEY,
    conversation TEXT NOT NULL,
    shown BLOB NOT NULL,  -- JSON in the channel's own form
    finished_at INTEGER  -- ms
) STRICT;
CREATE TABLE import_identity (
    message INTEGER NOT NULL,                   -- message.no
    step INTEGER NOT NULL,                      -- index of the call in the message's steps; 0 if it has none
    identity BLOB NOT NULL,                     -- 16 bytes of BLAKE2b, which includes the owner
    is_copy INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (message, step)
) STRICT, WITHOUT ROWID;
CREATE TABLE import_alias (                     -- a session that is a copy of an imported one on another machine
    owner_id TEXT NOT NULL REFERENCES user (id),
    format TEXT NOT NULL,
    source_id TEXT NOT NULL,
    conversation INTEGER NOT NULL REFERENCES conversation (no) ON DELETE CASCADE,
    path TEXT NOT NULL,                         -- of the source, as in the origin of a conversation
    PRIMARY KEY (owner_id, format, source_id)
) STRICT;
CREATE TABLE import_purged (                    -- purged conversations of other machines, which are not imported again
    digest BLOB PRIMARY KEY                     -- 16 bytes of BLAKE2b of owner, format and source id
) STRICT, WITHOUT ROWID;
CREATE VIRTUAL TABLE search_words USING fts5 (
    text, tools, reasoning, agent, model, facts, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE search_infix USING fts5 (term, content = '', tokenize = 'trigram', detail = 'none', columnsize = 0);
CREATE TABLE answer_edit (                      -- changes of files by finished tool calls
    owner_id TEXT NOT NULL,
    at INTEGER NOT NULL,                        -- ms, of the answer
    message INTEGER NOT NULL,                   -- message.no
    number INTEGER NOT NULL,                    -- position among the answer's changes
    path TEXT NOT NULL,
    tool TEXT NOT NULL,
    added INTEGER,                              -- lines; null = unknown
    removed INTEGER,
    PRIMARY KEY (owner_id, at, message, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE answer_slot (                      -- sums of a quarter of an hour, from which days of every time zone are summed
    slot INTEGER NOT NULL,                      -- quarters of an hour since 1970, UTC
    owner_id TEXT NOT NULL,
    runs INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    steps INTEGER NOT NULL,
    ms INTEGER NOT NULL,
    timed INTEGER NOT NULL,
    first_ms INTEGER NOT NULL,
    firsts INTEGER NOT NULL,
    context INTEGER NOT NULL,
    PRIMARY KEY (slot, owner_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE answer_day (
    day INTEGER NOT NULL,                       -- since 1970, UTC
    owner_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    lead TEXT NOT NULL,
    model TEXT NOT NULL,
    runs INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    steps INTEGER NOT NULL,
    ms INTEGER NOT NULL,
    timed INTEGER NOT NULL,
    first_ms INTEGER NOT NULL,
    firsts INTEGER NOT NULL,
    context INTEGER NOT NULL,
    PRIMARY KEY (day, owner_id, project_id, agent, lead, model)
) STRICT;
CREATE TABLE conversation_tag (
    conversation INTEGER NOT NULL REFERENCES conversation (no) ON DELETE CASCADE,
    tag TEXT NOT NULL,
    active_at INTEGER NOT NULL                                     -- always `updated_at` of the conversation, for the order of the list
) STRICT;
CREATE TABLE push_device (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    owner_id TEXT NOT NULL,
    token TEXT NOT NULL,                                           -- the login that added it; revoking it removes the device
    name TEXT NOT NULL,
    endpoint TEXT NOT NULL UNIQUE,                                 -- whoever knows this URL and the keys can send to the browser
    p256dh BLOB NOT NULL,
    auth BLOB NOT NULL,
    events TEXT NOT NULL,                                          -- JSON array
    details INTEGER NOT NULL,                                      -- 1 = also send what is asked or answered
    created_at INTEGER NOT NULL,                                   -- ms
    sent_at INTEGER,                                               -- ms; the last accepted notification
    failures INTEGER NOT NULL DEFAULT 0,                           -- notifications that failed since then
    error TEXT NOT NULL DEFAULT ''
) STRICT;
INSERT INTO user VALUES ('local', 'local', 0);
INSERT INTO tally VALUES ('messages', 0);
INSERT INTO tally VALUES ('indexed', 0);
INSERT INTO project VALUES ('default', 'local', 'default', '', NULL, '', '', 0, 0, 0);
CREATE INDEX message_conversation ON message (conversation);
CREATE UNIQUE INDEX message_client ON message (conversation, client_id) WHERE client_id IS NOT NULL;
CREATE INDEX message_parent ON message (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX message_to_index ON message (conversation, first_seq) WHERE is_indexed = 0;
CREATE UNIQUE INDEX run_started ON run (conversation) WHERE status IN ('running', 'waiting', 'interrupted');
CREATE INDEX run_open ON run (status, conversation) WHERE status IN ('queued', 'running', 'waiting', 'interrupted');
CREATE INDEX run_conversation ON run (conversation);
CREATE UNIQUE INDEX event_journal ON event (run, phase, key) WHERE key IS NOT NULL;
CREATE INDEX exchange_run ON exchange (run);
CREATE INDEX approval_run ON approval (run);
CREATE INDEX approval_open ON approval (asked_at) WHERE approved IS NULL;
CREATE INDEX inbox_waiting ON inbox (run, no) WHERE taken_at IS NULL;
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
CREATE UNIQUE INDEX user_name ON user (name);
CREATE INDEX idempotency_at ON idempotency (at);
CREATE UNIQUE INDEX project_root ON project (owner_id, root_path) WHERE root_path IS NOT NULL;
CREATE UNIQUE INDEX conversation_key ON conversation (owner_id, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX conversation_client ON conversation (owner_id, client_id) WHERE client_id IS NOT NULL;
CREATE INDEX conversation_recent ON conversation (updated_at, no);
CREATE INDEX conversation_owner ON conversation (owner_id, updated_at, no);
CREATE INDEX conversation_place ON conversation (directory);
CREATE INDEX conversation_title ON conversation (title);
CREATE INDEX conversation_parent ON conversation (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX blob_uploaded ON blob_owner (owner_id) WHERE uploaded_at IS NOT NULL;
CREATE INDEX translation_exchange ON translation (exchange, converter, first_seq);
CREATE INDEX search_conversation ON search (conversation);
CREATE INDEX import_conversation_no ON import_conversation (conversation);
CREATE INDEX import_conversation_parent ON import_conversation (owner_id, format, parent) WHERE parent IS NOT NULL;
CREATE INDEX forgetting_open ON forgetting (no) WHERE done_at IS NULL;
CREATE INDEX share_conversation ON share (conversation);
CREATE INDEX answer_conversation ON answer (conversation, at);
CREATE INDEX answer_failed ON answer (at) WHERE error <> '';
CREATE TRIGGER tool_counted AFTER INSERT ON answer_tool BEGIN
    INSERT INTO tool_day
        SELECT a.at / 86400000, c.owner_id, new.tool, new.calls, new.failed, new.denied, new.ms, new.timed
        FROM answer AS a JOIN conversation AS c ON c.no = a.conversation WHERE a.message = new.message
    ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, failed = failed + excluded.failed, denied = denied + excluded.denied,
        ms = ms + excluded.ms, timed = timed + excluded.timed;
END;
CREATE TRIGGER tool_uncounted AFTER DELETE ON answer_tool BEGIN
    UPDATE tool_day SET calls = calls - old.calls, failed = failed - old.failed, denied = denied - old.denied, ms = ms - old.ms,
        timed = timed - old.timed
    WHERE tool = old.tool AND (day, owner_id) = (
        SELECT a.at / 86400000, c.owner_id FROM answer AS a JOIN conversation AS c ON c.no = a.conversation WHERE a.message = old.message
    );
    DELETE FROM tool_day WHERE calls = 0;
END;
CREATE INDEX aside_conversation ON aside (conversation);
CREATE TRIGGER answer_came AFTER INSERT ON message WHEN new.role = 'assistant' BEGIN
    INSERT OR IGNORE INTO to_count VALUES (new.no);
END;
CREATE TRIGGER answer_changed AFTER UPDATE OF status, metadata ON message WHEN new.role = 'assistant' BEGIN
    INSERT OR IGNORE INTO to_count VALUES (new.no);
END;
CREATE TRIGGER answer_went AFTER DELETE ON message WHEN old.role = 'assistant' BEGIN
    DELETE FROM to_count WHERE message = old.no;
    DELETE FROM answer_tool WHERE message = old.no;
    DELETE FROM answer WHERE message = old.no;
END;
CREATE INDEX run_session ON run (agent_session_id) WHERE agent_session_id IS NOT NULL;
CREATE INDEX search_vector_model ON search_vector (model);
CREATE INDEX permission_grant_conversation ON permission_grant (conversation);
CREATE INDEX run_parent ON run (parent_run) WHERE parent_run IS NOT NULL;
CREATE INDEX knowledge_chunk_document ON knowledge_chunk (document);
CREATE INDEX cron_run_open ON cron_run (run) WHERE settled_at IS NULL;
CREATE INDEX task_comment_task ON task_comment (task);
CREATE INDEX task_change_task ON task_change (task, no);
CREATE INDEX task_change_run ON task_change (by_run) WHERE by_run IS NOT NULL;
CREATE INDEX task_run_task ON task_run (task, watcher, at);
CREATE INDEX webhook_delivery_due ON webhook_delivery (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX import_identity_identity ON import_identity (identity);
CREATE INDEX conversation_unplaced ON conversation (no) WHERE repository IS NULL;
CREATE VIEW counted_project AS
    SELECT no, owner_id, CASE
        WHEN length(repository) > 0 AND project_id IN ('default', 'default:' || owner_id) THEN 'repository:' || CAST(repository AS TEXT)
        ELSE project_id
    END AS project_id
    FROM conversation;
CREATE TRIGGER conversation_moved BEFORE UPDATE OF project_id, repository ON conversation
    WHEN new.project_id <> old.project_id OR new.repository IS NOT old.repository BEGIN
    INSERT OR IGNORE INTO to_count SELECT message FROM answer WHERE conversation = old.no;
    DELETE FROM answer_tool WHERE message IN (SELECT message FROM answer WHERE conversation = old.no);
    DELETE FROM answer WHERE conversation = old.no;
END;
CREATE INDEX conversation_host ON conversation (host, updated_at) WHERE host <> '';
CREATE INDEX import_alias_no ON import_alias (conversation);
CREATE INDEX answer_at ON answer (at);
CREATE INDEX answer_limits ON answer (at) WHERE limits IS NOT NULL;
CREATE INDEX answer_edit_message ON answer_edit (message);
CREATE TRIGGER run_called AFTER INSERT ON run WHEN json_type(CAST(new.settings AS TEXT), '$.served') = 'object' BEGIN
    UPDATE conversation SET is_call = 1
        WHERE no = new.conversation AND NOT EXISTS (SELECT 1 FROM run WHERE conversation = new.conversation AND no <> new.no);
END;
CREATE INDEX conversation_call ON conversation (is_call, updated_at, no, deleted_at, archived_at, owner_id);
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
CREATE INDEX conversation_project ON conversation (project_id, updated_at);
CREATE INDEX conversation_pinned ON conversation (updated_at) WHERE pinned_at IS NOT NULL;
CREATE INDEX conversation_tag_conversation ON conversation_tag (conversation, tag);
CREATE INDEX conversation_tag_recent ON conversation_tag (tag, active_at, conversation);
CREATE TRIGGER conversation_active AFTER UPDATE OF updated_at ON conversation WHEN new.updated_at <> old.updated_at BEGIN
    UPDATE conversation_tag SET active_at = new.updated_at WHERE conversation = new.no;
END;
CREATE INDEX conversation_expires ON conversation (expires_at) WHERE expires_at IS NOT NULL;
CREATE TRIGGER answer_edit_removed AFTER DELETE ON answer BEGIN
    DELETE FROM answer_edit WHERE message = old.message;
END;
CREATE INDEX push_device_owner ON push_device (owner_id);
CREATE TRIGGER push_device_removed AFTER DELETE ON push_device BEGIN
    DELETE FROM webhook_delivery WHERE webhook = 'device:' || old.id;
END;
CREATE TRIGGER token_revoked AFTER UPDATE OF revoked_at ON token WHEN new.revoked_at IS NOT NULL BEGIN
    DELETE FROM push_device WHERE token = new.id;
END;
CREATE TRIGGER answer_counted AFTER INSERT ON answer BEGIN
    INSERT INTO answer_day
        SELECT new.at / 86400000, c.owner_id, c.project_id, new.agent, new.lead, new.model,
            1, new.status = 'failed', new.input, new.output, new.cache_read, new.cache_write, new.reasoning,
            coalesce(new.cost, 0), new.unpriced, new.steps, new.ms,
            new.timed, coalesce(new.first_ms, 0), new.first_ms IS NOT NULL, new.context
        FROM counted_project AS c WHERE c.no = new.conversation
    ON CONFLICT DO UPDATE SET
        runs = runs + excluded.runs, failed = failed + excluded.failed, input = input + excluded.input,
        output = output + excluded.output, cache_read = cache_read + excluded.cache_read,
        cache_write = cache_write + excluded.cache_write, reasoning = reasoning + excluded.reasoning,
        cost = cost + excluded.cost, unpriced = unpriced + excluded.unpriced, steps = steps + excluded.steps,
        ms = ms + excluded.ms, timed = timed + excluded.timed, first_ms = first_ms + excluded.first_ms,
        firsts = firsts + excluded.firsts, context = context + excluded.context;
    INSERT INTO answer_slot
        SELECT new.at / 900000, c.owner_id,
            1, new.status = 'failed', new.input, new.output, new.cache_read, new.cache_write, new.reasoning,
            coalesce(new.cost, 0), new.unpriced, new.steps, new.ms,
            new.timed, coalesce(new.first_ms, 0), new.first_ms IS NOT NULL, new.context
        FROM conversation AS c WHERE c.no = new.conversation
    ON CONFLICT DO UPDATE SET
        runs = runs + excluded.runs, failed = failed + excluded.failed, input = input + excluded.input,
        output = output + excluded.output, cache_read = cache_read + excluded.cache_read,
        cache_write = cache_write + excluded.cache_write, reasoning = reasoning + excluded.reasoning,
        cost = cost + excluded.cost, unpriced = unpriced + excluded.unpriced, steps = steps + excluded.steps,
        ms = ms + excluded.ms, timed = timed + excluded.timed, first_ms = first_ms + excluded.first_ms,
        firsts = firsts + excluded.firsts, context = context + excluded.context;
END;
CREATE TRIGGER answer_uncounted AFTER DELETE ON answer WHEN NOT EXISTS (
    SELECT 1 FROM conversation WHERE no = old.conversation AND expires_at IS NOT NULL AND deleted_at IS NOT NULL
) BEGIN
    UPDATE answer_day SET
        runs = runs - 1, failed = failed - (old.status = 'failed'), input = input - old.input, output = output - old.output,
        cache_read = cache_read - old.cache_read, cache_write = cache_write - old.cache_write,
        reasoning = reasoning - old.reasoning, cost = cost - (coalesce(old.cost, 0)),
        unpriced = unpriced - old.unpriced, steps = steps - old.steps,
        ms = ms - old.ms, timed = timed - old.timed, first_ms = first_ms - (coalesce(old.first_ms, 0)),
        firsts = firsts - (old.first_ms IS NOT NULL), context = context - old.context
    WHERE day = old.at / 86400000 AND agent = old.agent AND lead = old.lead AND model = old.model
        AND (owner_id, project_id) = (SELECT c.owner_id, c.project_id FROM counted_project AS c WHERE c.no = old.conversation);
    DELETE FROM answer_day WHERE runs = 0 AND day = old.at / 86400000;
    UPDATE answer_slot SET
        runs = runs - 1, failed = failed - (old.status = 'failed'), input = input - old.input, output = output - old.output,
        cache_read = cache_read - old.cache_read, cache_write = cache_write - old.cache_write,
        reasoning = reasoning - old.reasoning, cost = cost - (coalesce(old.cost, 0)),
        unpriced = unpriced - old.unpriced, steps = steps - old.steps,
        ms = ms - old.ms, timed = timed - old.timed, first_ms = first_ms - (coalesce(old.first_ms, 0)),
        firsts = firsts - (old.first_ms IS NOT NULL), context = context - old.context
    WHERE slot = old.at / 900000 AND owner_id = (SELECT c.owner_id FROM conversation AS c WHERE c.no = old.conversation);
    DELETE FROM answer_slot WHERE runs = 0 AND slot = old.at / 900000;
END;
