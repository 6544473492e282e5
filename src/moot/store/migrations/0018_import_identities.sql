-- Identities of imported model calls and prompts, which are the same in all copies that a program makes when it forks or resumes a session.
-- Each call is counted in one message; in all others it is a copy.
CREATE TABLE import_identity (
    message INTEGER NOT NULL,                   -- message.no
    step INTEGER NOT NULL,                      -- index of the call in the message's steps; 0 if it has none
    identity BLOB NOT NULL,                     -- 16 bytes of BLAKE2b, which includes the owner
    is_copy INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (message, step)
) STRICT, WITHOUT ROWID;
CREATE INDEX import_identity_identity ON import_identity (identity);

ALTER TABLE import_conversation ADD COLUMN copied_from TEXT;                      -- source_id of the conversation it was forked from
ALTER TABLE import_conversation ADD COLUMN rank INTEGER NOT NULL DEFAULT 0;       -- among conversations with the same call; lowest = original
ALTER TABLE import_conversation ADD COLUMN started_at INTEGER NOT NULL DEFAULT 0; -- ms
