"""Time to sum the usage of 100,000 answers, compared with a bare scan of the same rows: `python benchmarks/stats.py [ANSWERS]`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from zoneinfo import ZoneInfo

from moot.config.settings import Settings
from moot.store import open_store
from moot.store.database.connection import connect

TOOLS = ("read_file", "shell", "edit_file", "search_files")
DAY = 86_400_000
CONVERSATION = (
    "INSERT INTO conversation (id, owner_id, project_id, title, title_source, agent, agent_type, model, directory, allowed_uris,"
    " is_task_finished, settings, message_count, unpriced_runs, created_at, updated_at)"
    " VALUES (?, 'local', 'default', '', 'none', 'default', 'moot', '', x'', x'', 0, x'7b7d', 0, 0, 0, 0)"
)
ANSWER = (
    "INSERT INTO answer (message, conversation, at, agent, lead, program, model, status, error, steps, input, output, cache_read,"
    " cache_write, reasoning, cost, first_ms, ms, timed, context)"
    " VALUES (?1, ?2, ?3, ?4, ?4, ?4, ?5, ?6, ?7, 3, 9000, 700, 4000, 0, 100, 12000, 800, 9000, 700, 5000)"
)


def fill(path: Path, answers: int) -> None:
    connection = connect(path, writing=True)
    connection.execute("BEGIN")
    connection.execute("PRAGMA defer_foreign_keys = ON")
    for no in range(1, answers // 20 + 1):
        connection.execute(CONVERSATION, (f"c{no}",))
    for no in range(1, answers + 1):
        failed = no % 50 == 0
        values = (
            no,
            (no - 1) // 20 + 1,
            no * DAY * 365 // answers,
            ("claude-code", "codex", "default", "pi")[no % 4],
            f"model{no % 9}@somewhere",
        )
        connection.execute(ANSWER, (*values, "failed" if failed else "finished", "overloaded" if failed else ""))
        connection.execute(
            "INSERT INTO answer_tool (message, tool, calls, failed, denied, ms, timed) VALUES (?, ?, 2, 0, 0, 900, 2)", (no, TOOLS[no % 4])
        )
    connection.execute("COMMIT")
    connection.close()


async def measured(answers: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder))
        store = await open_store(settings)
        try:
            await asyncio.to_thread(fill, settings.database, answers)
            bare, berlin, mine = connect(settings.database), ZoneInfo("Europe/Berlin"), store.of("local").stats

            async def scan() -> object:
                return bare.execute("SELECT sum(input), sum(output), sum(cost) FROM answer").fetchall()

            works: dict[str, Callable[[], Awaitable[object]]] = {
                "bare scan": scan,
                "moot stats": store.stats.usage,
                "of one owner": lambda: mine.usage(zone=berlin),
                "last 7 days": lambda: store.stats.usage(since=358 * DAY),
                "last 30 days, in Berlin": lambda: mine.usage(since=335 * DAY + 5_000_000, zone=berlin),
                "activity by day, in Berlin": lambda: mine.usage(by=("day",), zone=berlin),
                "by hour": lambda: mine.usage(by=("hour",)),
                "windows": lambda: mine.windows(365 * DAY),
                "bare scan again": scan,
            }
            assert (await store.stats.usage()).total.runs == answers
            for name, work in works.items():
                times: list[float] = []
                for _ in range(5):
                    began = time.perf_counter()
                    await work()
                    times.append((time.perf_counter() - began) * 1000)
                print(f"{name:28} {min(times):8.1f} ms")
            bare.close()
        finally:
            await store.close()


if __name__ == "__main__":
    asyncio.run(measured(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
