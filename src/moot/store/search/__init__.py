"""Full-text and semantic search: the query language, indexing, and finding matches.

There are two tables: an FTS5 index of the words of all messages (`search_words`), and the vocabulary, which is used to find parts of words.
The texts are not stored again: excerpts are made from messages. Conditions (role, model, content, owner) are indexed as words too, so
a search for one is as fast as a search for a word.
"""
