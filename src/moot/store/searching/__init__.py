"""Finding words in all conversations: what a query means, what a message is found by, and how one is matched with the other.

Three tables: the words of all messages by column (`search_words`, FTS5), the texts themselves, from which snippets are cut and without
which FTS5 could forget nothing, and the vocabulary, in which pieces of words are found. What a condition asks for (role, model, what
is in a message, whose it is) stands in the index as words too, so it costs what a word costs.

| file | what it holds |
|---|---|
| `query`, `moments` | the query language; points in time |
| `expression` | a query in the language of FTS5 |
| `documents`, `facts` | what a message is found by |
| `filling` | the index's rows: putting messages in, taking them out |
| `vocabulary` | all words that occur, and those that hold a piece of one |
| `finding` | pages of hits, newest or best first |
| `snippets` | what of a hit is shown |
| `reading` | answers that have no vector yet, and keeping those that were made |
| `nearest` | answers whose meaning lies near a question's |
"""

__all__: list[str] = []
