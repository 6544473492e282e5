"""What a search costs beside a bare FTS5 query over the same texts in the same run, and how fast the index fills.

A store of so many messages is made by the store's own code: messages in conversations, then `Search.index`. Texts are stretches of
Debian's installed documentation and of Python's library, of the length that messages have; a few hold a word that is nowhere else.
Beside it stands a database with nothing but one FTS5 table over the same texts. Figures are CPU, all threads of the process.

    python benchmarks/search.py [--messages 100000] [--folder FOLDER]

With `--folder` the store is kept, and used again by the next call.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median

import uvloop

from moot.config.settings import Settings
from moot.store import SqliteStore, open_store
from moot.store.library import sqlite
from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation
from moot.types.message import Message
from moot.types.part import Part, text_part

SOURCES = (Path("/usr/share/doc"), Path(os.__file__).parent)
ENDINGS = (".gz", ".txt", ".py", ".html", "")
CHARACTERS = 60_000_000
TOGETHER = 500
IN_CONVERSATION = 100
RARE = "quokkaword"
QUERIES = ("the", "license", "python", "the license", "exit code", '"public license"', RARE, "uokkawor", "icens", "nowherefound")
MEAN = 450


def corpus() -> str:
    """Text as it lies about on this machine."""
    found: list[str] = []
    size = 0
    for source in SOURCES:
        for path in sorted(source.rglob("*")):
            if size > CHARACTERS or path.suffix not in ENDINGS or not path.is_file() or path.stat().st_size > 1_000_000:
                continue
            data = path.read_bytes()
            try:
                text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
            except (UnicodeDecodeError, OSError, EOFError):
                continue
            found.append(text)
            size += len(text)
    return "\n".join(found)


def texts(count: int) -> Iterator[str]:
    """The same ones for the same count."""
    chance, whole = random.Random(1), corpus()
    for number in range(count):
        start = chance.randrange(len(whole) - 5000)
        length = min(int(chance.expovariate(1 / MEAN)) + 20, 4000)
        yield f"{whole[start : start + length]}{f' {RARE}' if number % 10_000 == 0 else ''}"


def parts_of(number: int, text: str) -> tuple[Part, ...]:
    """Every fifth message is a call's output, every seventh has thought first."""
    if number % 5 == 0:
        asked: JsonObject = {"command": "cat notes"}
        return ({"type": "tool-shell", "toolCallId": "1", "state": "output-available", "input": asked, "output": text},)
    return ({"type": "reasoning", "text": text[:200]}, text_part(text)) if number % 7 == 0 else (text_part(text),)


async def fill(store: SqliteStore, count: int) -> None:
    """A message a minute, the last one now."""
    began = int(time.time() * 1000) - count * 60_000
    said = texts(count)
    for start in range(0, count, TOGETHER):
        numbers = range(start, min(start + TOGETHER, count))
        heads = [number for number in numbers if number % IN_CONVERSATION == 0]
        await asyncio.gather(*(store.conversations.create(Conversation(f"c{head}", title=f"Conversation {head}")) for head in heads))
        messages = [
            Message(
                f"m{number}",
                "assistant" if number % 2 else "user",
                parts_of(number, next(said)),
                {"agent": "default", "model": "small@test", "steps": [{"step": 0, "model": "small@test", "cost": number % 1000 * 100_000}]},
                conversation=f"c{number - number % IN_CONVERSATION}",
                parent=f"m{number - 1}" if number % IN_CONVERSATION else None,
                created_at=began + number * 60_000,
            )
            for number in numbers
        ]
        await asyncio.gather(*(store.conversations.add_message(message) for message in messages))


def fill_bare(path: Path, count: int) -> float:
    """Seconds of CPU for an FTS5 table and its texts."""
    db = sqlite.connect(str(path), isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2')")
    said = list(enumerate(texts(count), 1))
    began = time.process_time()
    for start in range(0, count, TOGETHER):
        db.execute("BEGIN")
        db.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", said[start : start + TOGETHER])
        db.execute("COMMIT")
    taken = time.process_time() - began
    db.close()
    return taken


class Bare:
    """The plainest search there is: 50 rows and their snippets, in a thread as every program with an event loop needs one."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite.connect(str(path), isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA cache_size = -16384")

    def search(self, query: str, order: str) -> list[tuple[object, ...]]:
        sql = f"SELECT rowid, snippet(words, 0, '', '', '…', 20) FROM words WHERE words MATCH ? ORDER BY {order} LIMIT 50"
        return self._db.execute(sql, (query,)).fetchall()


async def middle(call: Callable[[], Awaitable[object]]) -> float:
    """ms of CPU, all threads, of as many calls as fit into a second or so: what others use the machine for does not count."""
    spent: list[float] = []
    until = time.perf_counter() + 1.5
    while len(spent) < 3 or (time.perf_counter() < until and len(spent) < 100):
        began = time.process_time()
        await call()
        spent.append((time.process_time() - began) * 1000)
    return median(spent)


async def compare(store: SqliteStore, bare: Bare, query: str, *, best: bool) -> None:
    order = "rank" if best else "rowid DESC"

    async def plain() -> object:
        return await asyncio.to_thread(bare.search, query, order)

    search = partial(store.search.search, query, best=best)
    hits = len((await search()).hits)
    floor, ours, again = await middle(plain), await middle(search), await middle(plain)
    floor = (floor + again) / 2
    row("best" if best else "newest", query, str(hits), f"{ours:.2f}", f"{floor:.2f}", f"{ours / floor:.1f}")


def row(*cells: str) -> None:
    sys.stdout.write(f"{cells[0]:8}{cells[1]:20}{''.join(f'{cell:>12}' for cell in cells[2:])}\n")
    sys.stdout.flush()


def spent_by_children() -> float:
    """Seconds of CPU."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def command(home: Path) -> None:
    """`moot search` as a command, its start included."""
    for query in ("license", RARE):
        waits: list[float] = []
        spent = [spent_by_children()]
        for _ in range(7):
            began = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "moot", "search", query, "--limit", "20"],
                env={**os.environ, "MOOT_HOME": str(home)},
                check=True,
                capture_output=True,
            )
            waits.append((time.perf_counter() - began) * 1000)
            spent.append(spent_by_children())
        cpu = median(after - before for before, after in pairwise(spent)) * 1000
        sys.stdout.write(f"moot search {query}: {median(waits):.0f} ms as a command, start included, {cpu:.0f} of CPU\n")


async def run(folder: Path, count: int) -> None:
    home, beside = folder / "home", folder / "bare.db"
    fresh = not beside.exists()
    store = await open_store(Settings(home=home))
    if fresh:
        await fill(store, count)
        wall, began = time.perf_counter(), time.process_time()
        done, total = await store.search.index(seconds=36_000)
        wall, taken = time.perf_counter() - wall, time.process_time() - began
        plain = fill_bare(beside, count)
        speeds = f"{done / taken:,.0f} in a second of CPU ({done / wall:,.0f} of time); bare FTS5: {count / plain:,.0f}"
        sys.stdout.write(f"indexed {done:,} of {total:,} messages: {speeds}\n")
    sys.stdout.write(f"the store takes {(home / 'data' / 'moot.db').stat().st_size / 1e6:,.0f} MB\n")
    row("order", "query", "hits", "moot ms", "bare ms", "ratio")
    bare = Bare(beside)
    for best in (False, True):
        for query in QUERIES:
            await compare(store, bare, query, best=best)
    for query in ("license role:user has:tool", "in:reasoning license", "after:2d", "has:tool -license", "cost:>0.09 license"):
        for best in (False, True):
            taken = await middle(partial(store.search.search, query, best=best))
            row("best" if best else "newest", query, "", f"{taken:.2f}")
    await store.close()
    command(home)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--messages", type=int, default=100_000)
    options.add_argument("--folder", type=Path)
    given = options.parse_args()
    if given.folder is not None:
        given.folder.mkdir(parents=True, exist_ok=True)
        uvloop.run(run(given.folder, given.messages))
        return
    with tempfile.TemporaryDirectory() as folder:
        uvloop.run(run(Path(folder), given.messages))


if __name__ == "__main__":
    main()
