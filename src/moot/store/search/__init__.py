"""Full-text and semantic search: the query language, indexing, and finding matches.

There are three tables: an FTS5 index of the words of all messages (`search_words`), the texts (needed for snippets and for removing
entries from FTS5), and the vocabulary, which is used to find parts of words. Conditions (role, model, content, owner) are indexed as
words too, so they cost as much as a word.
"""
