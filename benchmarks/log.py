"""The cost of an append to the log: single events from many tasks, and batches as a socket read produces them.

Each figure is printed next to that of a bare `sqlite3` script, which inserts the same rows in its own thread with one commit per append.
CPU times are those of the whole process.

    python benchmarks/log.py [--seconds 2] [--reps 3]
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median

import orjson
import uvloop

from moot.config.settings import Settings, Storage
from moot.store import SqliteStore, open_store
from moot.store.database.connection import sqlite
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import new_id
from moot.types.message import Message, text_part
from moot.types.run import Run
from moot.types.store import Fence, Submission

TASKS = 20
RAW = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1795302511,"model":"some-model",'
    b'"choices":[{"index":0,"delta":{"content":" hello"},"finish_reason":null}]}\n\n'
)
CHUNKS = ({"type": "text-delta", "id": "0.0:1", "delta": " hello"},)

Figures = tuple[float, float, float, float]
"""Rows per second, median and p99 of the wait in ms, CPU in µs per row."""


async def begin(store: SqliteStore) -> Fence:
    conversation = Conversation(new_id(), directory="/")
    run = Run(new_id(), conversation.id, new_id())
    prompt = Message(new_id(), "user", (text_part("continue"),))
    accepted = await store.records.submit(Submission(run, conversation, prompt, owner="bench"))
    assert accepted.fence is not None
    return accepted.fence


async def ours(home: Path, durability: str, tasks: int, rows: int, offered: int, seconds: float) -> Figures:
    store = await open_store(Settings(home=home, storage=Storage(durability=durability)))  # type: ignore[arg-type]
    fences = [await begin(store) for _ in range(tasks)]
    waits: list[float] = []
    until = time.perf_counter() + seconds

    async def append(fence: Fence) -> None:
        exchange = f"{fence.run}:0.0"
        events = [Event("raw", CHUNKS, RAW, fence.run, exchange, at=1_795_302_511_000_000) for _ in range(rows)]
        now = due = time.perf_counter()
        while now < until:
            await store.log.append(fence.conversation, events, fence=fence)
            waits.append(-(now - (now := time.perf_counter())))
            if offered and (due := due + tasks / offered) > now:
                await asyncio.sleep(due - now)
                now = time.perf_counter()

    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(append(fence) for fence in fences))
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    last = [await store.log.last_seq(fence.conversation) for fence in fences]
    assert sum(last) == len(waits) * rows + 2 * tasks, "rows are missing"
    await store.close()
    return figures(waits, rows, wall, cpu)


def bare(home: Path, durability: str, _tasks: int, rows: int, _offered: int, seconds: float) -> Figures:
    connection = sqlite.connect(str(home / "bare.db"), isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {'FULL' if durability == 'full' else 'NORMAL'}")
    connection.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, at INTEGER, run INTEGER, kind TEXT, chunks BLOB, raw BLOB)")
    waits: list[float] = []
    seq = 0
    began, cpu = time.perf_counter(), time.process_time()
    now, until = began, began + seconds
    while now < until:
        connection.execute("BEGIN IMMEDIATE")
        values = [(seq + index, 1, 1, "raw", bytearray(orjson.dumps(CHUNKS)), bytearray(RAW)) for index in range(rows)]
        connection.executemany("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)", values)
        connection.execute("COMMIT")
        seq += rows
        waits.append(-(now - (now := time.perf_counter())))
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    connection.close()
    return figures(waits, rows, wall, cpu)


def figures(waits: list[float], rows: int, wall: float, cpu: float) -> Figures:
    ordered = sorted(waits)
    count = len(ordered) * rows
    return count / wall, median(ordered) * 1e3, ordered[int(len(ordered) * 0.99)] * 1e3, cpu / count * 1e6


CASES = [
    ("20 tasks, single events", "normal", TASKS, 1, 0, "≥ 12,000 appends/s"),
    ("the same at 12,000/s", "normal", TASKS, 1, 12_000, "median < 0.5 ms"),
    ("1 task, single events", "normal", 1, 1, 0, ""),
    ("1 task, batches of 100", "normal", 1, 100, 0, "≥ 60,000 rows/s"),
    ("20 tasks, batches of 100", "normal", TASKS, 100, 0, "≥ 60,000 rows/s"),
    ("20 tasks, single events", "full", TASKS, 1, 0, ""),
]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--reps", type=int, default=3)
    given = options.parse_args()

    print(f"{'':36} {'':8} {'rows/s':>10} {'median ms':>10} {'p99 ms':>8} {'CPU µs/row':>11}  to reach")
    for name, durability, tasks, rows, offered, target in CASES:
        for label, measure in (("moot", ours), ("sqlite3", bare)):
            found: list[Figures] = []
            for _ in range(given.reps):
                with tempfile.TemporaryDirectory() as folder:
                    got = measure(Path(folder), durability, tasks, rows, offered, given.seconds)
                    found.append(uvloop.run(got) if asyncio.iscoroutine(got) else got)  # type: ignore[arg-type]
            rate, middle, high, cpu = (median(column) for column in zip(*found, strict=True))
            title = f"{name} ({durability})" if label == "moot" else ""
            print(f"{title:36} {label:8} {rate:10,.0f} {middle:10.3f} {high:8.2f} {cpu:11.2f}  {target if label == 'moot' else ''}")


if __name__ == "__main__":
    main()
