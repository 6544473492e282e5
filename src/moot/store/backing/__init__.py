"""A whole home as one file, made while it is in use, and homes made of such files.

| file | what it holds |
|---|---|
| `manifest` | what a backup is, and reading one to its end |
| `backups` | `BackingUp` on a store, one process at a time |
| `writing` | a snapshot of the database and everything beside it, packed |
| `config` | a configuration without its secrets |
| `restoring` | a home made of a backup, all of it or nothing |
| `copies` | the files that the store knows of: backups, and copies made before an upgrade |
"""

from moot.store.backing.manifest import read
from moot.store.backing.restoring import restore

__all__ = ["read", "restore"]
