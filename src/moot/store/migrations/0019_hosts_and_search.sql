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
) STRICT;
CREATE INDEX import_alias_no ON import_alias (conversation);

CREATE TABLE import_purged (                    -- purged conversations of other machines, which are not imported again
    digest BLOB PRIMARY KEY                     -- 16 bytes of BLAKE2b of owner, format and source id
) STRICT, WITHOUT ROWID;

-- The index no longer keeps a copy of all texts: snippets are made from messages, and FTS5 removes entries without their text. It now
-- contains tool outputs to their end, so all messages are marked to be indexed again, in the background. Rows of `search` stay until then,
-- because vectors belong to them.
DROP TABLE search_words;
DROP TABLE search_text;
CREATE VIRTUAL TABLE search_words USING fts5 (
    text, tools, reasoning, agent, model, facts, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);

DROP TABLE search_infix;
DELETE FROM search_term;
CREATE VIRTUAL TABLE search_infix USING fts5 (term, content = '', tokenize = 'trigram', detail = 'none', columnsize = 0);

UPDATE message SET is_indexed = 0 WHERE is_indexed <> 0;
