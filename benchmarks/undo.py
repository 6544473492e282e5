"""Snapshots of a folder with many files, and the undo of a prompt that changed 100 of them.

A run with one command that rewrites 100 files is undone and redone, with the engine in this process. A tool round is measured too, to show
what a snapshot adds. Figures are wall times, because most of the work is done by the file system.

    python benchmarks/undo.py [--files 10000] [--changed 100]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from moot.agents.checkpoints import Recorder
from moot.config.settings import Settings
from moot.engine.undo import Undo
from moot.providers.pool import Providers
from moot.runtime.runtime import Runtime
from moot.store import SqliteStore, open_store
from moot.types.conversation import Conversation
from moot.types.message import Message, text_part
from moot.types.run import Run

KILOBYTES = 8


def fill(folder: Path, count: int) -> None:
    for number in range(count):
        path = folder / f"package-{number // 100}" / f"file-{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"# {number}\n".encode() + os.urandom(KILOBYTES * 512).hex().encode())


def say(what: str, began: float) -> None:
    sys.stdout.write(f"{what:48}{(time.perf_counter() - began) * 1000:10,.0f} ms\n")
    sys.stdout.flush()


async def recorded(settings: Settings, folder: Path, run: Run, changes: int, first: str) -> None:
    """Record a run whose command changes files."""

    async def prompt() -> Run:
        return run

    recorder = Recorder(settings.database, run.id, (folder,), folder, prompt, lambda: int(time.time() * 1_000_000))
    began = time.perf_counter()
    await recorder.keep_folders()
    say(first, began)
    for path in sorted(folder.rglob("*.py"))[:changes]:
        path.write_text(f"# changed by {run.id}\n")
    began = time.perf_counter()
    await recorder.close()
    say(f"determine what {changes} changes are", began)


async def measure(home: Path, folder: Path, count: int, changes: int) -> None:
    settings = Settings(home)
    fill(folder, count)
    async with await open_store(settings) as store:
        runtime = Runtime(settings, store, Providers(settings))
        await conversation(store, folder)
        await recorded(settings, folder, Run("run-1", "c", "answer-1"), changes, f"first snapshot of {count:,} files")
        await recorded(settings, folder, Run("run-2", "c", "answer-2"), changes, "second snapshot")
        undo = Undo(runtime, await store.conversations.get("c"))
        for name, work in (("preview of the undo", undo.undo("files", dry_run=True)), ("undo", undo.undo("files")), ("redo", undo.redo())):
            began = time.perf_counter()
            plan = await work
            assert len(plan.files) == changes, plan
            say(f"{name} of {changes} files", began)
    size = (home / "data" / "checkpoints.db").stat().st_size
    sys.stdout.write(f"the stored contents take {size / 1e6:,.0f} MB; the folder has {count * KILOBYTES / 1000:,.0f} MB\n")


async def conversation(store: SqliteStore, folder: Path) -> None:
    await store.conversations.create(Conversation("c", directory=str(folder)))
    for number in (1, 2):
        parent = f"answer-{number - 1}" if number > 1 else None
        prompt = Message(f"prompt-{number}", "user", (text_part("go"),), conversation="c", parent=parent)
        await store.conversations.add_message(prompt)
        answer = Message(f"answer-{number}", "assistant", (text_part("done"),), conversation="c", parent=prompt.id, run=f"run-{number}")
        await store.conversations.add_message(answer)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--files", type=int, default=10_000)
    options.add_argument("--changed", type=int, default=100)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "work")
        asyncio.run(measure(Path(place, "home"), folder, given.files, given.changed))


if __name__ == "__main__":
    main()
