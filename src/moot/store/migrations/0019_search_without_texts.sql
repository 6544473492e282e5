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
