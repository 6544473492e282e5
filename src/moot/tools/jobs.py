"""Running commands, in the foreground or background. No process is left behind."""

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

__all__ = ["Job", "Jobs", "drain", "start"]

OUTPUT_BYTES = 200_000_000
"""A command that writes more output is killed."""
LINGER = 0.3
"""Seconds to wait for output after the command has exited, if a process it started keeps the pipe open."""


@dataclass(slots=True)
class Job:
    """A running or finished command."""

    command: str
    child: Child
    spool: Spool
    code: int | None = None
    """None = still running, or killed by us."""
    stop_reason: str = ""
    """Why we killed it; empty if it exited by itself."""
    task: asyncio.Task[None] | None = None

    @property
    def state(self) -> str:
        """The state as shown to the model."""
        if self.stop_reason:
            return self.stop_reason
        return "running" if self.code is None else f"exit code {self.code}"


class Jobs:
    """The background commands of a conversation, by number."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}

    async def add(self, job: Job) -> str:
        """Start reading the job's output and return its id."""
        id = str(len(self.jobs) + 1)
        self.jobs[id] = job
        # outlives the call by design; `end`, `aclose` or the end of the loop cancel it, which kills the command
        job.task = asyncio.create_task(drain(job), name=f"shell {id}")
        await asyncio.sleep(0)  # a task cancelled before its first step does not clean up
        return id

    async def end(self, job: Job) -> None:
        """Kill a job and all processes it started."""
        if job.task is not None and not job.task.done():
            job.stop_reason = "killed"
            job.task.cancel()
            with suppress(asyncio.CancelledError):
                await job.task

    async def aclose(self) -> None:
        """Kill all jobs and discard their output."""
        for job in self.jobs.values():
            await self.end(job)
            job.spool.close()


async def start(
    command: str, *, cwd: Path, env: Mapping[str, str], note: Callable[[JsonObject], Awaitable[None]], kept_bytes: int = KEPT_BYTES
) -> Job:
    """Start a command. Its process group is recorded in the journal before it runs. `kept_bytes` of its output are kept completely."""
    child = await spawn(
        [shutil.which("bash", path="/bin:/usr/bin") or "/bin/sh", "-c", command], cwd=cwd, env=env, stderr="stdout", gated=True
    )
    try:
        await note({"pgid": child.group, "started": child.started})
        await child.release()
    except BaseException:
        await child.kill(0)
        raise
    return Job(command, child, Spool(kept_bytes))


async def drain(job: Job) -> None:
    """Read the command's output to its end, then kill any remaining processes. If cancelled, kill all of them."""
    reading = asyncio.create_task(_read(job))
    waiting = asyncio.create_task(job.child.wait())
    try:
        await asyncio.wait({reading, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not job.stop_reason and waiting.done():
            await asyncio.wait({reading}, timeout=LINGER)
        if not job.stop_reason:
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
            job.stop_reason = f"killed: it wrote more than {OUTPUT_BYTES // 1_000_000} MB"
            return
