"""Full-text and semantic search: the query language, indexing, and finding matches.

There are three tables: the words of all messages by column (`search_words`, FTS5), the texts, which are needed for snippets and for
removing entries from FTS5, and the vocabulary, in which partial words are found. Conditions (role, model, content, owner) are indexed as
words too, so they cost as much as a word.
"""
