"""Scheduling of runs, and assembly of a working moot.

| file | contents |
|---|---|
| `opening.py` | `open_engine`: assembles store, runtime and runs |
| `runs.py` | `LocalRuns`: submit, resume, cancel, answer and wait, on one SQLite file shared by many processes |
| `parking.py` | runs that wait for answers, and resuming them |
| `hearing.py` | cancel requests of other processes |
| `submissions.py` | preparing a prompt to be stored |
| `warming.py` | preloading of what the first run needs |
| `keeping.py` | background maintenance of the store and its index |
| `forgetting.py` | finishing interrupted purges; in servers, applying the retention rules |
| `meaning.py` | the embedding model; in servers, background embedding of answers |
| `titles.py` | titles by the small model |
| `channels.py` | `serve`: runs a channel |
| `servers.py` | the lock that tells which server serves a home |
| `owners.py` | the lock that tells whether an owner is alive |
"""

from moot.engine.opening import Engine, open_engine

__all__ = ["Engine", "open_engine"]
