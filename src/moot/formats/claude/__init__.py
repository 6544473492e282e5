"""Claude Code's own sessions: one file of lines for each, a tree by `uuid` and `parentUuid`, sub-agents among them or beside them.

| file | what it does |
|---|---|
| `format.py` | the format: which files are its own, where they lie, reading and writing |
| `_session.py` | a file's lines into messages |
| `_kinds.py` | what kind of line it is |
| `_about.py` | title, directory, times |
| `_sidechains.py` | lines of sub-agents |
| `_parents.py` | which call began a sub-agent that has a file of its own |
| `_writing.py` | a conversation as the lines of a session |
| `_blocks.py` | parts as blocks of the model's API |
| `_samples.py` | a session in little, to try reading with |
"""

__all__: list[str] = []
