"""The format `clai`: conversations of the command line tool clai, and what lies beside them.

| file | what it does |
|---|---|
| `format.py` | `Clai`: where it lies, what it looks like |
| `reading.py` | a chat as a conversation |
| `surroundings.py` | sealed reasoning, folders that chats are bound to, the copy of the last chat |
| `writing.py` | a conversation as a chat |
| `configuration.py` | what it keeps besides, as pieces of a configuration of ours |
"""

__all__: list[str] = []
