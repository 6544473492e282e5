-- What was brought in from other programs: which conversation is which of theirs, which message is which, and what was read to its end.
CREATE TABLE import_conversation (
    owner_id TEXT NOT NULL REFERENCES user (id),
    format TEXT NOT NULL,
    source_id TEXT NOT NULL,
    conversation INTEGER NOT NULL REFERENCES conversation (no) ON DELETE CASCADE,
    version INTEGER NOT NULL,                   -- of the format, as it was last read to its end
    parent TEXT,                                -- source_id of the conversation that it is a part of
    parent_call TEXT,
    head TEXT,                                  -- the message that the shown branch ended with when an import last set it
    PRIMARY KEY (owner_id, format, source_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX import_conversation_no ON import_conversation (conversation);
CREATE INDEX import_conversation_parent ON import_conversation (owner_id, format, parent) WHERE parent IS NOT NULL;
INSERT OR IGNORE INTO import_conversation (owner_id, format, source_id, conversation, version, head)
    SELECT owner_id, json_extract(CAST(origin AS TEXT), '$.format'), json_extract(CAST(origin AS TEXT), '$.source_id'), no, 0, head_id
    FROM conversation
    WHERE origin IS NOT NULL AND json_valid(CAST(origin AS TEXT))
        AND json_type(CAST(origin AS TEXT), '$.format') = 'text' AND json_type(CAST(origin AS TEXT), '$.source_id') = 'text'
    ORDER BY no DESC;

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
