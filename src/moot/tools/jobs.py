"""Commands that run: read to their end, in the foreground or beside the conversation, and never left behind."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from moot.guard.processes import Child, spawn
from moot.tools.spool import KEPT_BYTES, Spool
from moot.types.canonical import JsonObject

__all__ = ["Job", "Jobs", "drain", "started"]

OUTPUT_BYTES = 200_000_000
"""A command that writes more is ended: nobody will read it."""
LINGER = 0.3
"""Seconds for what is still in the pipe when the command itself has ended and something of it holds the pipe open."""


@dataclass(slots=True)
class Job:
    """A running or finished command."""

    command: str
    child: Child
    spool: Spool
    code: int | None = None
    """None = it runs, or was ended by us."""
    why: str = ""
    """Why we ended it; empty when it ended by itself."""
    task: asyncio.Task[None] | None = None

    @property
    def state(self) -> str:
        """In a few words."""
        if self.why:
            return self.why
        return "running" if self.code is None else f"exit code {self.code}"


class Jobs:
    """The background commands of a conversation, by number."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}

    async def add(self, job: Job) -> str:
        """Its id; from now on its output is read."""
        id = str(len(self.jobs) + 1)
        self.jobs[id] = job
        # lives beyond the call by design: kept here, cancelled by `end`, by `aclose`, or with the loop, and kills its command then
        job.task = asyncio.create_task(drain(job), name=f"shell {id}")
        await asyncio.sleep(0)  # a task that is cancelled before its first step does not clean up
        return id

    async def end(self, job: Job) -> None:
        """Kills a job with all that it started."""
        if job.task is not None and not job.task.done():
            job.why = "killed"
            job.task.cancel()
            with suppress(asyncio.CancelledError):
                await job.task

    async def aclose(self) -> None:
        """Kills them all and gives up what they said."""
        for job in self.jobs.values():
            await self.end(job)
            job.spool.close()


async def started(
    command: str, *, cwd: Path, env: Mapping[str, str], note: Callable[[JsonObject], Awaitable[None]], kept: int = KEPT_BYTES
) -> Job:
    """A command whose process group is in the journal before it does anything; `kept` bytes of what it says are kept whole."""
    child = await spawn(
        [shutil.which("bash", path="/bin:/usr/bin") or "/bin/sh", "-c", command], cwd=cwd, env=env, stderr="stdout", gated=True
    )
    try:
        await note({"pgid": child.group, "started": child.started})
        await child.release()
    except BaseException:
        await child.kill(0)
        raise
    return Job(command, child, Spool(kept))


async def drain(job: Job) -> None:
    """Reads the command's output to its end, then kills whatever it left behind; when cancelled, all of it."""
    reading = asyncio.create_task(_read(job))
    waiting = asyncio.create_task(job.child.wait())
    try:
        await asyncio.wait({reading, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not job.why and waiting.done():
            await asyncio.wait({reading}, timeout=LINGER)
        if not job.why:
            job.code = await waiting
    finally:
        reading.cancel()
        await job.child.kill(2.0 if job.code is None else 0)
        await asyncio.gather(reading, waiting, return_exceptions=True)


async def _read(job: Job) -> None:
    assert job.child.stdout is not None
    while piece := await job.child.stdout.read(1 << 18):
        await job.spool.add(piece)
        if job.spool.total > OUTPUT_BYTES:
            job.why = f"killed: it wrote more than {OUTPUT_BYTES // 1_000_000} MB"
            return
