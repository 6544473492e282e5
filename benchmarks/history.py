"""Speed of long conversations, and of many conversations, compared with a bare `sqlite3` script in the same run.

It measures reading the last 50 messages of a branch of 10,000 (and of 100, to show what grows), appending to it, listing the newest 50 of
1,000 conversations, filtering 10,000 conversations, and searching 100,000 messages, newest first. The script has the same columns, decodes
the same JSON and writes the same rows per message, one commit each, but has no thread, classes, tree, seqs, checks or substring search.
Each figure is the median of many calls.

    python benchmarks/history.py [--messages 10000] [--indexed 100000]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from statistics import median

import orjson
import uvloop

from moot.config.settings import Settings
from moot.store import SqliteStore, open_store
from moot.store.database.connection import sqlite
from moot.store.rows import CONVERSATION, conversation_row, placeholders
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import new_id
from moot.types.message import Message, text_part

CALLS = 200
LAST = 50
LISTED = 1000
FILTERED = 10_000
WORDS = [f"word{number}" for number in range(5000)]
COMMON, RARE = "message", "needle"
COLUMNS = CONVERSATION.replace("no, ", "", 1)
chance = random.Random(1)


def text(number: int) -> str:
    words = chance.choices(WORDS, k=60)
    return f"{COMMON if number % 3 else 'other'} {number} {' '.join(words)}{f' {RARE}' if number % 1000 == 0 else ''}"


class Bare:
    """The same rows in a plain database, in this thread."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite.connect(str(path), isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = NORMAL")
        self.db.execute(
            "CREATE TABLE message (no INTEGER PRIMARY KEY, conversation TEXT, id TEXT, parent TEXT, role TEXT, parts BLOB, metadata BLOB,"
            " run TEXT, status TEXT, client TEXT, first INTEGER, last INTEGER, folded INTEGER, at INTEGER)"
        )
        self.db.execute("CREATE INDEX message_of ON message (conversation, no)")
        self.db.execute(f"CREATE TABLE conversation (no INTEGER PRIMARY KEY, {COLUMNS})")
        self.db.execute("CREATE TABLE event (seq INTEGER PRIMARY KEY, at INTEGER, kind TEXT, body BLOB)")
        self.db.execute("CREATE INDEX recent ON conversation (updated_at)")
        self.db.execute("CREATE VIRTUAL TABLE words USING fts5 (text)")

    def add(self, conversation: str, number: int, said: str) -> None:
        parts = orjson.dumps([text_part(said)])
        row = (conversation, f"m{number}", f"m{number - 1}", "user", parts, b"{}", None, "finished", None, number, number, number, number)
        self.db.execute(f"INSERT INTO message VALUES (NULL{', ?' * len(row)})", row)

    def append(self, conversation: str, said: str) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        self.db.execute("INSERT INTO event VALUES (NULL, 1, 'message', ?)", (orjson.dumps({"role": "user", "parts": [text_part(said)]}),))
        self.add(conversation, 1, said)
        self.db.execute("UPDATE conversation SET updated_at = ?, message_count = 1, head_id = ? WHERE no = 1", (1, "m1"))
        self.db.execute("COMMIT")

    def append_event(self, text: str) -> None:
        self.db.execute("INSERT INTO event VALUES (NULL, 1, 'meta', ?)", (orjson.dumps({"text": text}),))

    def last(self, conversation: str) -> list[tuple[object, ...]]:
        rows = self.db.execute("SELECT * FROM message WHERE conversation = ? ORDER BY no DESC LIMIT ?", (conversation, LAST)).fetchall()
        return [(*row[:5], orjson.loads(row[5]), orjson.loads(row[6]), *row[7:]) for row in rows]

    def list(self) -> list[tuple[object, ...]]:
        sql = "SELECT * FROM conversation WHERE deleted_at IS NULL AND archived_at IS NULL ORDER BY updated_at DESC, no DESC LIMIT ?"
        return [(*row[:17], orjson.loads(row[17]), *row[18:]) for row in self.db.execute(sql, (LAST,))]

    def filter(self, query: str) -> list[tuple[object, ...]]:
        sql = (
            "SELECT * FROM conversation WHERE deleted_at IS NULL AND archived_at IS NULL"
            " AND (title LIKE ?1 OR model LIKE ?1 OR agent LIKE ?1 OR CAST(directory AS TEXT) LIKE ?1)"
            " ORDER BY updated_at DESC, no DESC LIMIT ?2"
        )
        return [(*row[:17], orjson.loads(row[17]), *row[18:]) for row in self.db.execute(sql, (f"%{query}%", LAST))]

    def search(self, query: str) -> list[tuple[object, ...]]:
        sql = "SELECT rowid, snippet(words, 0, '', '', '…', 20) FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT 50"
        return self.db.execute(sql, (query,)).fetchall()


async def begin(store: SqliteStore, bare: Bare, numbers: range) -> None:
    """Create empty conversations in both databases."""
    wanted = [Conversation(new_id(), title=f"Conversation {number}", directory="/work") for number in numbers]
    for start in range(0, len(wanted), 500):
        for made in await asyncio.gather(*(store.conversations.create(one) for one in wanted[start : start + 500])):
            bare.db.execute(f"INSERT INTO conversation (no, {COLUMNS}) VALUES (NULL, {placeholders(COLUMNS)})", conversation_row(made))


async def fill(store: SqliteStore, bare: Bare, id: str, count: int) -> None:
    await store.conversations.create(Conversation(id, title=id))
    bare.db.execute("BEGIN")
    said = [text(number) for number in range(count)]
    for number, words in enumerate(said):
        bare.add(id, number, words)
        bare.db.execute("INSERT INTO words (text) VALUES (?)", (words,))
    bare.db.execute("COMMIT")
    messages = [
        Message(f"{id}.{number}", "user", (text_part(words),), conversation=id, parent=f"{id}.{number - 1}" if number else None)
        for number, words in enumerate(said)
    ]
    for start in range(0, count, 500):
        await asyncio.gather(*(store.conversations.add_message(message) for message in messages[start : start + 500]))


async def ours(call: Callable[[], Awaitable[object]]) -> float:
    waits: list[float] = []
    for _ in range(CALLS):
        began = time.perf_counter()
        await call()
        waits.append(time.perf_counter() - began)
    return median(waits) * 1e3


async def theirs(call: Callable[[], object]) -> float:
    async def awaited() -> object:
        return call()

    return await ours(awaited)


async def run(folder: Path, messages: int, indexed: int) -> None:
    store, bare = await open_store(Settings(home=folder)), Bare(folder / "bare.db")
    await begin(store, bare, range(LISTED))
    print_row("", "moot ms", "sqlite3 ms", "ratio")
    for id, count in (("short", 100), ("long", messages)):
        await fill(store, bare, id, count)
        await compare(f"last {LAST} of {count:,}", partial(store.conversations.branch, id, limit=LAST), partial(bare.last, id))

        async def add(id: str = id) -> object:
            message = Message(new_id(), "user", (text_part("more " * 50),), conversation=id)
            return await store.conversations.add_message(message, move_head=False)

        await compare(f"add a message to {count:,}", add, partial(bare.append, id, "more " * 50))
        event = Event("meta", body={"text": "x" * 200})
        await compare(f"append an event to {count:,}", partial(store.log.append, id, [event]), partial(bare.append_event, "x" * 200))
    await compare(f"newest {LAST} of {LISTED:,}", partial(store.conversations.list, limit=LAST), bare.list)
    await begin(store, bare, range(LISTED, FILTERED))
    for query in ("99", "nowhere"):
        name = f"filter {FILTERED:,} by {query!r}"
        await compare(name, partial(store.conversations.list, limit=LAST, query=query), partial(bare.filter, query))
    await fill(store, bare, "rest", indexed - messages)
    began = time.perf_counter()
    done, total = await store.search.index(seconds=3600)
    sys.stdout.write(f"(indexing {done:,} of {total:,} messages took {time.perf_counter() - began:.1f} s)\n")
    for query in (COMMON, RARE, "word17 word4"):
        await compare(f"search {query!r}", partial(store.search.search, query, limit=LAST), partial(bare.search, query))
    await store.close()


async def compare(name: str, call: Callable[[], Awaitable[object]], bare: Callable[[], object]) -> None:
    await call()
    floor, mine, again = await theirs(bare), await ours(call), await theirs(bare)
    floor = (floor + again) / 2
    print_row(name, f"{mine:.3f}", f"{floor:.3f}", f"{mine / floor:.1f}")


def print_row(*cells: str) -> None:
    sys.stdout.write(f"{cells[0]:28}{''.join(f'{cell:>12}' for cell in cells[1:])}\n")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--messages", type=int, default=10_000)
    options.add_argument("--indexed", type=int, default=100_000)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        uvloop.run(run(Path(folder), given.messages, given.indexed))


if __name__ == "__main__":
    main()
