"""`moot chat list` for a person at a terminal: the conversations in a list that filters as you type, and what to do with one.

| file | what it does |
|---|---|
| `acting.py` | what the letters do: edit, delete, rename, archive, fork, copy, show |
| `browsing.py` | the first picture, before anything heavy is loaded; then the loop |
| `looking.py` | the first look into the store, and what the person is asked |
| `looping.py` | the list, again and again, until somebody leaves or goes on with a conversation; opens an engine for actions only |
| `rows.py` | conversations as rows, page by page from the store |
"""

__all__: list[str] = []
