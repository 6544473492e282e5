"""The cost of waiting: CPU of an idle `moot serve` with cron jobs and parked runs, compared with one without any.

The jobs are not due and the runs wait for a person, so nothing happens. Both servers are real processes, measured at the same time. The
number of asyncio tasks is counted in this process, with a copy of the home.

    python benchmarks/waiting.py [--jobs 1000] [--runs 200] [--seconds 60]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio
import spent

from moot.config.loader import load
from moot.engine import open_engine
from moot.runtime.cron import OwnerJobs
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall
from moot.types.message import text_part
from moot.types.run import Prompt

SETTLED = 15.0
"""Seconds to wait after the start of a server, until its start-up work is done."""

MORE = "limits: {runs_per_user: 0}\npermissions: {mode: ask, timeout: 30d}\nstorage: {seal_after: 0}\n"


async def fill(home: Path, jobs: int, runs: int) -> None:
    """Add jobs and start runs, which park at their first tool call."""
    settings = load(home=home, environ={}, directory=home).settings
    async with open_engine(settings) as engine:
        mine = OwnerJobs(lambda: settings, engine.store)
        for number in range(jobs):
            schedule = {"cron": f"{number % 60} 3 1 1 *"} if number % 2 else {"every": "30d"}
            await mine.add(f"job-{number}", {"prompt": "Look for problems and describe them. " * 10, **schedule})
        submitted = [await engine.runs.submit(Prompt((text_part("go"),), directory=str(home), on_crash="resume")) for _ in range(runs)]
        for one in submitted:
            assert (await engine.runs.wait(one.run.id)).status == "waiting"


async def tasks(home: Path) -> int:
    """Return the number of asyncio tasks of an engine that serves this home."""
    settings = load(home=home, environ={}, directory=home).settings
    async with open_engine(settings, resume=True) as engine, anyio.create_task_group() as group:
        group.start_soon(engine.cron.work)
        await anyio.sleep(2)
        found = len(asyncio.all_tasks())
        group.cancel_scope.cancel()
        return found


@contextmanager
def served(home: Path) -> Iterator[int]:
    """Start a server for the home and yield its process id. Stop it at the end of the block."""
    command, environ = [sys.executable, "-m", "moot", "serve", "--port", "0"], {**os.environ, "MOOT_HOME": str(home)}
    process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process.pid
        assert process.poll() is None, "the server has ended"
    finally:
        process.terminate()
        process.wait(30)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    script = [Reply(tool_calls=[ToolCall("shell", {"command": "touch made"})], times=0)]
    with tempfile.TemporaryDirectory() as folder, ScriptedProcess(script) as model, ExitStack() as open_:
        homes = {name: Path(folder) / name for name in ("without", "with")}
        for home in homes.values():
            home.mkdir()
            (home / "config.yaml").write_text(f"{model.config()}\n{MORE}")
        anyio.run(fill, homes["without"], 0, 0)
        anyio.run(fill, homes["with"], given.jobs, given.runs)
        counts: dict[str, int] = {}
        for name, home in homes.items():
            copied = shutil.copytree(home, Path(folder) / f"{name} copied")
            counts[name] = anyio.run(tasks, copied)
        pids = {name: open_.enter_context(served(home)) for name, home in homes.items()}
        time.sleep(SETTLED)
        before = {name: spent.cpu(pid) for name, pid in pids.items()}
        began = time.monotonic()
        time.sleep(given.seconds)
        took = time.monotonic() - began
        used = {name: (spent.cpu(pid) - before[name]) / took * 100 for name, pid in pids.items()}
    print(f"{given.jobs:,} cron jobs and {given.runs:,} parked runs, {took:.0f} s without activity")
    print(f"{'':10}{'% of a core':>12}{'tasks':>8}")
    for name in homes:
        print(f"{name:10}{used[name]:12.2f}{counts[name]:8}")
    print(f"{'cost':10}{used['with'] - used['without']:12.2f}{counts['with'] - counts['without']:8}")


if __name__ == "__main__":
    main()
