"""The format `talkcody`: the database of TalkCody, and the snapshots that it shares.

| file | what it does |
|---|---|
| `format.py` | `TalkCody`: where it lies, what it looks like |
| `database.py` | conversations of the database |
| `snapshot.py` | the conversation of a snapshot |
| `rows.py` | rows and snapshot messages, step by step, as messages |
| `attachments.py` | attached files, from the folder beside the database |
| `writing.py` | a conversation as a snapshot |
| `sample.py` | a database to try reading with |
| `configuration.py` | what it keeps besides, as pieces of a configuration of ours |
"""

__all__: list[str] = []
