"""The cost of a search, compared with a bare FTS5 query over the same texts in the same run, and the speed of indexing.

The store's own code creates conversations with messages, and then indexes them with `Search.index`. Texts are excerpts of Debian's
installed documentation and of Python's library, as long as typical messages; a few have a unique word, some a line of Chinese. The
other database has only one FTS5 table over the same texts, and is queried twice: `bare` fetches the row's number and a snippet, `shown`
also everything else that a hit shows (conversation, id, title, role, time) from another table, and searches for the same words (for a part
of a word: the words that contain it, which a bare word index does not find). Figures are CPU times of the whole process.

    python benchmarks/search.py [--messages 100000] [--folder FOLDER]

With `--folder` the store is kept and used again by the next call.
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
from itertools import islice, pairwise
from pathlib import Path
from statistics import median

import uvloop

from moot.config.settings import Settings
from moot.store import SqliteStore, open_store
from moot.store.database.connection import connect, sqlite
from moot.store.search.matches import ENOUGH
from moot.store.search.query import parse
from moot.store.search.text import phrase, spaced
from moot.store.search.vocabulary import Parts
from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation, Project
from moot.types.message import Message, Part, text_part

SOURCES = (Path("/usr/share/doc"), Path(os.__file__).parent)
ENDINGS = (".gz", ".txt", ".py", ".html", "")
CHARACTERS = 60_000_000
TOGETHER = 500
IN_CONVERSATION = 100
RARE = "quokkaword"
QUERIES = (
    *("the", "license", "python", "the license", "exit code", '"public license"', RARE, f"{RARE} the"),
    *("uokkawor", "icens", "nowherefound", "检索", "会话模型", "license 检索"),
)
CONDITIONS = (
    *("license role:user has:tool", "in:reasoning license", "after:2d", "has:tool -license", "cost:>0.09 license"),
    *("license agent:claude-code", "license project:shop-3", "license before:30d", "agent:claude-code project:shop-3 before:30d the"),
    *(f"{RARE} agent:default", "the model:small before:60d after:90d"),
)
CHINESE = ["检索", "会话", "模型", "日志", "重放", "导出", "备份", "费用", "图片", "代码"]
AGENTS = ("default", "default", "claude-code")
PROJECTS = 10
MEAN = 450


def corpus() -> str:
    """Return text from files found on this machine."""
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
    """Yield `count` texts, always the same ones for the same count."""
    chance, whole = random.Random(1), corpus()
    for number in range(count):
        start = chance.randrange(len(whole) - 5000)
        length = min(int(chance.expovariate(1 / MEAN)) + 20, 4000)
        rare = f" {RARE} the" if number % 10_000 == 0 else ""
        chinese = f" {''.join(chance.choices(CHINESE, k=6))}" if number % 50 == 0 else ""
        yield f"{whole[start : start + length]}{rare}{chinese}"


def parts_of(number: int, text: str) -> tuple[Part, ...]:
    """Return a message's parts. Every fifth message is a tool output, and every seventh starts with reasoning."""
    if number % 5 == 0:
        asked: JsonObject = {"command": "cat notes"}
        return ({"type": "tool-shell", "toolCallId": "1", "state": "output-available", "input": asked, "output": text},)
    return ({"type": "reasoning", "text": text[:200]}, text_part(text)) if number % 7 == 0 else (text_part(text),)


async def fill(store: SqliteStore, count: int) -> None:
    """Store `count` messages, one per minute, the last one now."""
    began = int(time.time() * 1000) - count * 60_000
    said = texts(count)
    for number in range(PROJECTS):
        await store.projects.create(Project(f"shop-{number}", f"shop-{number}"))
    for start in range(0, count, TOGETHER):
        numbers = range(start, min(start + TOGETHER, count))
        heads = [number for number in numbers if number % IN_CONVERSATION == 0]
        made = [Conversation(f"c{head}", title=title_of(head), project=f"shop-{head // IN_CONVERSATION % PROJECTS}") for head in heads]
        await asyncio.gather(*(store.conversations.create(conversation) for conversation in made))
        messages = [
            Message(
                f"m{number}",
                "assistant" if number % 2 else "user",
                parts_of(number, next(said)),
                {
                    "agent": AGENTS[number // IN_CONVERSATION % 3],
                    "model": "small@test",
                    "steps": [{"step": 0, "model": "small@test", "cost": number % 1000 * 100_000}],
                },
                conversation=f"c{head_of(number)}",
                parent=f"m{number - 1}" if number % IN_CONVERSATION else None,
                created_at=began + number * 60_000,
            )
            for number in numbers
        ]
        await asyncio.gather(*(store.conversations.add_message(message) for message in messages))


def head_of(number: int) -> int:
    return number - number % IN_CONVERSATION


def title_of(head: int) -> str:
    return f"Conversation {head}"


def fill_bare(path: Path, count: int) -> float:
    """Create an FTS5 table with the texts. Return the CPU seconds."""
    db = sqlite.connect(str(path), isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2')")
    db.execute("CREATE TABLE message (no INTEGER PRIMARY KEY, conversation TEXT, id TEXT, title TEXT, role TEXT, at INTEGER)")
    said, taken = enumerate(texts(count)), 0.0
    while some := [(number + 1, spaced(text)) for number, text in islice(said, TOGETHER)]:
        began = time.process_time()
        db.execute("BEGIN")
        db.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", some)
        db.execute("COMMIT")
        taken += time.process_time() - began
        about = [(no, f"c{head_of(no - 1)}", f"m{no - 1}", title_of(head_of(no - 1)), "user", no * 60_000) for no, _ in some]
        db.executemany("INSERT INTO message (no, conversation, id, title, role, at) VALUES (?, ?, ?, ?, ?, ?)", about)
    db.close()
    return taken


class Bare:
    """The simplest possible search: 50 rows and their snippets, in a thread, which every program with an event loop needs."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite.connect(str(path), isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA cache_size = -16384")

    def search(self, query: str, order: str) -> list[tuple[object, ...]]:
        sql = f"SELECT rowid, snippet(words, 0, '', '', '…', 20) FROM words WHERE words MATCH ? ORDER BY {order} LIMIT 50"
        return self._db.execute(sql, (query,)).fetchall()

    def count(self, query: str) -> int:
        return self._db.execute("SELECT count(*) FROM words WHERE words MATCH ?", (query,)).fetchone()[0]

    def shown(self, query: str, order: str) -> list[tuple[object, ...]]:
        """Return the rows with all other fields that a hit shows."""
        sql = (
            "SELECT words.rowid, m.conversation, m.id, m.title, m.role, m.at, snippet(words, 0, '', '', '…', 20)"
            f" FROM words JOIN message AS m ON m.no = words.rowid WHERE words MATCH ? ORDER BY {order} LIMIT 50"
        )
        return self._db.execute(sql, (query,)).fetchall()


def meant(home: Path, bare: Bare, query: str) -> str:
    """Return the query in FTS5's syntax. A part of a word is replaced by the words that contain it, as moot finds those too."""
    terms = parse(query, now=0).terms
    found = [[phrase(term)] for term in terms]
    if bare.count(joined(found)) < ENOUGH:
        connection = connect(home / "data" / "moot.db")
        found = [Parts(connection).phrases(term) for term in terms]
        connection.close()
    return joined(found)


def joined(found: list[list[str]]) -> str:
    return " AND ".join(f"({' OR '.join(phrases)})" for phrases in found)


async def middle(call: Callable[[], Awaitable[object]]) -> float:
    """Return the median CPU time of a call in ms, over as many calls as fit into about a second."""
    spent: list[float] = []
    until = time.perf_counter() + 1.5
    while len(spent) < 3 or (time.perf_counter() < until and len(spent) < 100):
        began = time.process_time()
        await call()
        spent.append((time.process_time() - began) * 1000)
    return median(spent)


async def compare(store: SqliteStore, home: Path, bare: Bare, query: str, *, best: bool) -> None:
    search = partial(store.search.search, query, best=best)
    hits = len((await search()).hits)
    said, order = meant(home, bare, query), "rank" if best else "rowid DESC"

    def plain() -> Awaitable[object]:
        return asyncio.to_thread(bare.search, query if query.isascii() else said, order)

    def shown() -> Awaitable[object]:
        return asyncio.to_thread(bare.shown, said, order if best else f"words.{order}")

    floor, more, ours = await middle(plain), await middle(shown), await middle(search)
    floor, more = (floor + await middle(plain)) / 2, (more + await middle(shown)) / 2
    figures = (f"{ours:.2f}", f"{floor:.2f}", f"{ours / floor:.1f}", f"{more:.2f}", f"{ours / more:.1f}")
    row("best" if best else "newest", query, str(hits), *figures)


def row(*cells: str) -> None:
    sys.stdout.write(f"{cells[0]:8}{cells[1]:20}{''.join(f'{cell:>12}' for cell in cells[2:])}\n")
    sys.stdout.flush()


def spent_by_children() -> float:
    """Return the CPU seconds of ended child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def command(home: Path) -> None:
    """Measure `moot search` as a command, including its start."""
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
    row("order", "query", "hits", "moot ms", "bare ms", "ratio", "shown ms", "ratio")
    bare = Bare(beside)
    for best in (False, True):
        for query in QUERIES:
            await compare(store, home, bare, query, best=best)
    for query in CONDITIONS:
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
