-- Conversations from other machines.
ALTER TABLE conversation ADD COLUMN host TEXT NOT NULL DEFAULT '';  -- name of the machine in the configuration; '' = this machine
CREATE INDEX conversation_host ON conversation (host, updated_at) WHERE host <> '';

CREATE TABLE import_alias (                     -- a session that is a copy of an imported one on another machine
    owner_id TEXT NOT NULL REFERENCES user (id),
    format TEXT NOT NULL,
    source_id TEXT NOT NULL,
    conversation INTEGER NOT NULL REFERENCES conversation (no) ON DELETE CASCADE,
    path TEXT NOT NULL,                         -- of the source, as in the origin of a conversation
    PRIMARY KEY (owner_id, format, source_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX import_alias_no ON import_alias (conversation);

CREATE TABLE import_purged (                    -- purged conversations of other machines, which are not imported again
    digest BLOB PRIMARY KEY                     -- 16 bytes of BLAKE2b of owner, format and source id
) STRICT, WITHOUT ROWID;
