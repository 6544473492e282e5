"""What was brought in from elsewhere, on SQLite: whole recordings, and conversations in short pieces that can be told again and again.

A message of a source is known by its id there and a digest of its raw, so whatever is told once more is found and left alone; what has
grown, was told anew or is new is added. Each piece is one short transaction of its own, and all that is known of it is in the same one:
where a process dies, the next one goes on.

| file | what it does |
|---|---|
| `imports.py` | `Imports`: its methods, and which thread does what |
| `finding.py` | which conversation and which messages of a source are here already |
| `adding.py` | the transaction that adds a piece |
| `settling.py` | what is known of a conversation once all of it was read: title, head, parents, times |
| `recordings.py` | a whole recording in one transaction |
"""

from moot.store.importing.imports import StoredImports

__all__ = ["StoredImports"]
