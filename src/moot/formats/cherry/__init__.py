"""The format `cherry`: agents' sessions of Cherry Studio, of its first version's database and of its second's, and the second's chats.

| file | what it does |
|---|---|
| `format.py` | `Cherry`: where it lies, what it looks like |
| `sessions.py` | sessions of agents as conversations |
| `topics.py` | chats, which are trees, as conversations |
| `messages.py` | a row as a message: blocks of the first version, parts of the second |
| `blocks.py` | a block as a part |
| `sample.py` | databases to try reading with |
| `configuration.py` | what it keeps besides, as pieces of a configuration of ours |
"""

__all__: list[str] = []
