-- Search by columns and conditions. The index is derived from the messages, so the old one goes and all of them are marked to be
-- indexed again, in the background. Words that hold a piece of a word are found in a vocabulary, which is far smaller than the texts.
DROP TABLE search_words;
DROP TABLE search_substrings;
DROP TABLE search;

CREATE TABLE search (
    no INTEGER PRIMARY KEY,                     -- grows with the message's time, so the newest hits are the last rows
    message INTEGER NOT NULL UNIQUE,            -- message.no
    conversation INTEGER NOT NULL REFERENCES conversation (no),
    at INTEGER NOT NULL,
    cost INTEGER                                -- nano-dollars
) STRICT;
CREATE INDEX search_conversation ON search (conversation);

CREATE TABLE search_text (                      -- what search_words was given: it wants it back to forget it
    no INTEGER PRIMARY KEY,
    text TEXT NOT NULL,
    tools TEXT NOT NULL,
    reasoning TEXT NOT NULL,
    agent TEXT NOT NULL,
    model TEXT NOT NULL,
    facts TEXT NOT NULL                         -- words of which conditions are made
) STRICT;
CREATE VIRTUAL TABLE search_words USING fts5 (
    text, tools, reasoning, agent, model, facts, content = '', tokenize = 'unicode61 remove_diacritics 2'
);

CREATE TABLE search_term (
    no INTEGER PRIMARY KEY,
    term TEXT NOT NULL UNIQUE
) STRICT;
CREATE VIRTUAL TABLE search_infix USING fts5 (term, content = '', tokenize = 'trigram', detail = 'none');

UPDATE message SET is_indexed = 0 WHERE is_indexed <> 0;
