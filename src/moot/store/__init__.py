"""The event log and everything derived from it, in one SQLite file that many processes share.

Callers use the Protocols of `types/store.py` (`Log`, `Records`, `Conversations`, `Tree`, `Search`, `Blobs` and others) on the event loop.
Each write goes to the writer, a single thread with the only writing connection. It runs all queued writes in one transaction, commits
once, and then completes their futures. If the transaction fails, it runs again with a savepoint per conversation. Each read goes to the
reader, another thread: it sees one snapshot and returns complete values. Nothing else opens the file, and nothing bypasses SQLite.

Everything has an owner: `of(owner)` returns these parts for one owner. The owner is part of each query that looks up a row, so that
resources of other owners appear nonexistent. Whatever belongs to a conversation belongs to the conversation's owner, permanently; a blob
can be read by the owners who stored it.
"""

from typing import TYPE_CHECKING

from moot.plugins.registry import attribute

if TYPE_CHECKING:
    from moot.store.sqlite import SqliteStore, open_store

__all__ = ["SqliteStore", "open_store"]


def __getattr__(name: str) -> object:
    # the whole store needs an event loop; a read-only snapshot does not
    if name in __all__:
        return attribute(f"moot.store.sqlite:{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
