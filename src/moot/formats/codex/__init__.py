"""Codex's own sessions: one file of lines for each, where nearly everything stands twice.

| file | what it does |
|---|---|
| `format.py` | the format: which files are its own, where they lie, reading and writing |
| `_session.py` | a file's lines into messages |
| `_kinds.py` | what kind of line it is, in older versions too |
| `_parents.py` | which call of a session began another |
| `_writing.py` | a conversation as the lines of a session |
| `_items.py` | parts as items of the model's API |
| `_samples.py` | a session in little, to try reading with |
"""

__all__: list[str] = []
