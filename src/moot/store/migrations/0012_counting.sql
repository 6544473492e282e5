-- What answers took, counted from the log: a narrow row for each answer and each tool that it called, made again when the answer changes.
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
) STRICT;
CREATE INDEX answer_conversation ON answer (conversation, at);

CREATE TABLE answer_tool (
    message INTEGER NOT NULL,                   -- message.no
    tool TEXT NOT NULL,
    calls INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    denied INTEGER NOT NULL,
    ms INTEGER NOT NULL,                        -- of the calls whose time is known
    timed INTEGER NOT NULL,                     -- how many those are
    PRIMARY KEY (message, tool)
) STRICT, WITHOUT ROWID;

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
CREATE INDEX aside_conversation ON aside (conversation);

CREATE TABLE to_count (                         -- answers that came or changed since they were counted
    message INTEGER PRIMARY KEY
) STRICT;
INSERT INTO to_count SELECT no FROM message WHERE role = 'assistant';

CREATE TRIGGER answer_came AFTER INSERT ON message WHEN new.role = 'assistant' BEGIN
    INSERT OR IGNORE INTO to_count VALUES (new.no);
END;
CREATE TRIGGER answer_changed AFTER UPDATE OF status, metadata ON message WHEN new.role = 'assistant' BEGIN
    INSERT OR IGNORE INTO to_count VALUES (new.no);
END;
CREATE TRIGGER answer_went AFTER DELETE ON message WHEN old.role = 'assistant' BEGIN
    DELETE FROM to_count WHERE message = old.no;
    DELETE FROM answer WHERE message = old.no;
    DELETE FROM answer_tool WHERE message = old.no;
END;
