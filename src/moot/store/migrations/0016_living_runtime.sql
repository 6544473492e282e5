-- What a waiting run waits for: person, client, run or time. So far, a run could only wait for a person or for its client.
ALTER TABLE run ADD COLUMN awaits TEXT;
UPDATE run SET awaits = iif(
    owner IS NULL
        AND EXISTS (SELECT 1 FROM approval AS a WHERE a.run = run.id AND a.approved IS NULL)
        AND NOT EXISTS (
            SELECT 1 FROM approval AS a WHERE a.run = run.id AND a.approved IS NULL AND CAST(a.questions AS TEXT) IS NOT '{"by":"client"}'
        ),
    'client', 'person'
) WHERE status = 'waiting';
-- When a run that waits for a time continues, in ms.
ALTER TABLE run ADD COLUMN wake_at INTEGER;
CREATE INDEX run_parent ON run (parent_run) WHERE parent_run IS NOT NULL;
-- The summaries that steps send instead of older messages: the current one of each message that a summary ends with.
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
-- Documents that agents may search. The files stay where they are; everything here is derived from them, except the sources.
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
CREATE INDEX knowledge_chunk_document ON knowledge_chunk (document);
CREATE TABLE knowledge_vector (
    no INTEGER PRIMARY KEY,                     -- knowledge_chunk.no
    model TEXT NOT NULL,                        -- which weights in which version
    vector BLOB NOT NULL
) STRICT;
CREATE VIRTUAL TABLE knowledge_words USING fts5 (path, heading, text, content = '', tokenize = 'unicode61 remove_diacritics 2');
-- Cron jobs: those added by a person or agent, and the state of those in the configuration (settings NULL).
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
-- The history of cron jobs. The unique row of an instant is inserted together with its prompt, so an instant never runs twice.
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
CREATE INDEX cron_run_open ON cron_run (run) WHERE settled_at IS NULL;

-- Tasks: the work items of projects, with a number in their project that is never given twice.
ALTER TABLE project ADD COLUMN last_task INTEGER NOT NULL DEFAULT 0;
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
CREATE INDEX task_comment_task ON task_comment (task);
-- The history of tasks. Numbers are never given twice, because watchers remember how far they have read.
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
CREATE INDEX task_change_task ON task_change (task, no);
CREATE INDEX task_change_run ON task_change (by_run) WHERE by_run IS NOT NULL;
-- Watchers that are in force, and the last change before that.
CREATE TABLE task_watcher (
    owner_id TEXT NOT NULL,
    name TEXT NOT NULL,
    since INTEGER NOT NULL,
    PRIMARY KEY (owner_id, name)
) STRICT;
-- How far a watcher has handled the changes of a task. Written together with the prompt that handles them.
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
CREATE INDEX task_run_task ON task_run (task, watcher, at);

-- Which events are stored for which outgoing webhook: the configured ones, without URLs and secrets.
CREATE TABLE webhook_subscription (
    name TEXT PRIMARY KEY,
    events TEXT NOT NULL,  -- JSON array
    in_project TEXT NOT NULL,  -- this and the next two: empty = any
    of_agent TEXT NOT NULL,
    in_conversation TEXT NOT NULL
) STRICT;
-- Events for outgoing webhooks. A row is inserted in the transaction of its event, so that none is lost or reported twice.
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
CREATE INDEX webhook_delivery_due ON webhook_delivery (due_at) WHERE due_at IS NOT NULL;
-- Which messages of a chat service show the answer of a run, so that an answer is completed after a restart and shown once.
CREATE TABLE channel_answer (
    run TEXT PRIMARY KEY,
    conversation TEXT NOT NULL,
    shown BLOB NOT NULL,  -- JSON in the channel's own form
    finished_at INTEGER  -- ms
) STRICT;
