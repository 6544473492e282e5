"""Who may run what, and when; and the one place where a working moot is put together.

| file | what it does |
|---|---|
| `opening.py` | `open_engine`: store, runtime and runs for as long as a block lasts |
| `runs.py` | `LocalRuns`: submit, resume, cancel, answer, wait on one SQLite file shared by many processes |
| `parking.py` | what waits for answers, and is taken up when they are there or can't come any more |
| `hearing.py` | hears cancels from other processes |
| `submissions.py` | what a prompt decides before it is stored |
| `warming.py` | has at hand what a first run would load |
| `keeping.py` | keeps the store small and its index filled, behind whatever else is done |
| `forgetting.py` | goes on with purges that were cut off; in servers, acts on what the rules say is over |
| `meaning.py` | the model of meanings; in servers, reads answers for their meaning |
| `titles.py` | what a conversation is called |
| `channels.py` | `serve`: a channel over the port that it gets |
| `servers.py` | which server serves a home |
| `owners.py` | the OS lock that says whether an owner lives |
"""

from moot.engine.opening import Engine, open_engine

__all__ = ["Engine", "open_engine"]
