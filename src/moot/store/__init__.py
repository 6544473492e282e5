"""The event log and everything derived from it, in one SQLite file that many processes share.

A piece of work comes in on the loop (`log`, `records`, `conversations`, `tree`, `search`, `blobs`) and becomes a `units` unit. What
writes goes to the `writer`, the one thread with the one writing connection: it takes all that has gathered, does it in one transaction
(after a failure anew, each conversation's share under a savepoint), commits once, and tells everybody. What reads goes to the `reader`,
another thread: each read sees one snapshot and comes back whole. Nobody else opens the file, and nobody reads it past the library.

Everything is somebody's: `of(owner)` gives the same parts for one owner. They look for that owner's rows only, in the same statement
that looks for the row at all, so what is another's is not found like what there is not. What hangs on a conversation is whose the
conversation is, for ever; bytes are read by those who have put them there.

| file | what it holds |
|---|---|
| `library` | the one SQLite library of the process, and whether it has the WAL-reset bug |
| `connect`, `faults`, `locks` | connections; the library's errors in our words; locks between processes |
| `migrations/`, `migrate` | the schema's numbered steps; who applies them: under a lock, backed up, all or nothing |
| `units`, `writer`, `reader` | work for the two threads and how its outcome comes back |
| `folding` | keeping the write-ahead log short beside the writer |
| `transaction`, `stored` | numbering and inserting events; an event as it is stored |
| `rows`, `lookup`, `messages` | rows to values; finding rows by what people call them; rows of messages |
| `log`, `changes` | `Log`: append with fence and changes; what each change does |
| `events`, `segments` | the one reader over sealed segments and rows, folding live messages; segments read, written and rewritten |
| `frames`, `zstd` | a frame of a segment as columns; how it is compressed, with dictionaries that come with releases |
| `upkeep`, `sealing`, `sizes` | `Upkeep`: who seals and gives pages back; rows that become a segment; what takes how much |
| `scrubbing` | writing the whole file anew, so that nothing lies on in it that was deleted |
| `records`, `submit`, `supersede` | `Records`: runs, inboxes, approvals; storing a prompt; ending a run that a new prompt replaces |
| `standing` | what a run stands at, for whoever takes it up |
| `projects` | `Projects`: folders of conversations, and the default one of each owner |
| `listing`, `glance` | the list of conversations; a look at it without an event loop |
| `conversations`, `branches` | `Conversations`: the list, and messages as they are said; walking a branch |
| `tree`, `nodes`, `forks` | `Tree`: siblings, deleted messages, branches; the tree as a list; a branch as a conversation of its own |
| `grants` | `Grants`: what a person allowed for a conversation |
| `stats`, `counting/` | `Stats`: what answers took, in rows of their own and in sums of days |
| `search`, `searching/`, `words` | `Search`: the index, its filling, the query language; text as the index sees it |
| `meaning` | `Meaning`: reads answers for what they mean, and finds those near a question |
| `importing/` | `Imports`: what was brought in from elsewhere, and which of it is here |
| `blobs` | `Blobs`: bytes by content |
| `shares` | `Shares`: pages for whoever has their link |
| `tokens` | `Tokens`: people, the tokens they show, codes for signing in |
| `idempotency` | `Idempotency`: answers that are given again for the same key |
| `poller` | noticing other processes' commits |
| `overlays`, `translating/` | `Translations`: newer translations of old exchanges, laid over the log's chunks |
| `verify/` | `Verifying`: whether what is stored is what it was |
| `backing/` | `BackingUp`: a home as one file, and a home of such a file |
| `forgetting/` | `Forgetting`: purging and redacting, with a receipt |
| `unindexing` | taking messages out of the index |
| `health` | what `moot doctor` shows |
| `sqlite` | the `Store` itself, and opening it |
"""

from typing import TYPE_CHECKING

from moot.plugins.registry import attribute

if TYPE_CHECKING:
    from moot.store.sqlite import SqliteStore, open_store

__all__ = ["SqliteStore", "open_store"]


def __getattr__(name: str) -> object:
    # the whole store needs an event loop, and a glance into it does not
    if name in __all__:
        return attribute(f"moot.store.sqlite:{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
