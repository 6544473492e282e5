"""Several server processes on one port: a supervisor starts the workers and replaces those that die.

All workers serve the same moot home. Worker 0, the leader, also does what only one process may do, such as cron jobs. The supervisor opens
no runs. Each worker has a channel to it, a socket with one JSON object per line. The channel also shows both sides that the other one has
ended: a worker whose supervisor is gone stops.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import tempfile
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from moot.config.home import WORKER
from moot.errors import MootError
from moot.guard.processes import foreground
from moot.server.state import METRICS
from moot.types.canonical import JsonObject, dumps, loads_object

HEALTHY = 30.0
"""Seconds after which a worker counts as started well, so that its next restart is not delayed."""

PAUSES = (0.1, 0.5, 2.0, 5.0, 10.0)
"""Seconds before each restart of a worker that dies again and again."""

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that stop a server."""

_LINE = 65_536

log = logging.getLogger("moot.server")


class Channel:
    """One end of the socket between the supervisor and a worker."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self._stream = stream
        self._reader = BufferedByteReceiveStream(stream)

    async def send(self, message: JsonObject) -> None:
        """Send a message. It is lost if the other side has ended, which `receive` shows."""
        with suppress(anyio.BrokenResourceError):
            await self._stream.send(dumps(message) + b"\n")

    async def receive(self) -> JsonObject | None:
        """Return the next message, or None at the end."""
        try:
            return loads_object(await self._reader.receive_until(b"\n", _LINE))
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
            return None


@dataclass(frozen=True, slots=True)
class Worker:
    """This process's place among the workers of a server."""

    channel: Channel
    index: int
    """0 is the leader."""
    port: int
    leader: str
    """Path of the socket on which the leader accepts requests from the other workers."""

    @property
    def leads(self) -> bool:
        return self.index == 0

    async def report(self, what: Literal["ready", "follows", "left"], value: int) -> None:
        """Tell the supervisor that this worker accepts requests, whether it imports automatically, or the number of its unfinished runs."""
        await self.channel.send({what: value})

    async def obey(self, stop: Callable[[], None], end: Callable[[], None]) -> None:
        """Call `stop` when the supervisor asks this worker to stop or has ended, and `end` when it must end at once."""
        while (message := await self.channel.receive()) is not None:
            end() if message.get("stop") == "now" else stop()
        stop()


async def this_worker() -> Worker | None:
    """Return this process's place among the workers; None if it was not started by a supervisor."""
    number = os.environ.pop(WORKER, "")
    if not number:
        return None
    channel = Channel(await anyio.abc.SocketStream.from_socket(socket.socket(fileno=int(number))))
    setup = await channel.receive()
    if setup is None:
        raise MootError("The supervisor of this worker has exited.", fix="Start the server again with `moot serve`.")
    return Worker(channel, int(str(setup["index"])), int(str(setup["port"])), str(setup["leader"]))


@dataclass(slots=True)
class _Child:
    index: int
    ready: anyio.Event = field(default_factory=anyio.Event)
    channel: Channel | None = None
    """None while the worker is not running."""
    left: int = 0
    """Number of unfinished runs, as reported by a worker that stopped."""


class Supervisor:
    """Starts and replaces the workers of one server."""

    def __init__(self, command: Sequence[str], *, count: int, port: int, folder: Path, follows: Callable[[bool], None]) -> None:
        """`command` starts a worker. `folder` is a private folder for the sockets and metrics of the workers.

        `follows` is called when the leader starts or stops importing from the agents on this machine.
        """
        self._command = list(command)
        self._children = [_Child(index) for index in range(count)]
        self._port = port
        self._leader = str(folder / "leader.sock")
        self._metrics = folder / "metrics"
        self._follows = follows
        self._stopping = anyio.Event()

    async def run(self, ready: Callable[[], Awaitable[None]]) -> int:
        """Run the workers until a signal stops them, and return the number of unfinished runs. `ready` is awaited when all accept requests.

        Raise MootError if a worker ends before it has accepted requests for the first time.
        """
        await anyio.Path(self._metrics).mkdir(mode=0o700)
        failed: list[MootError] = []
        async with anyio.create_task_group() as group:
            group.start_soon(self._handle_signals)
            async with anyio.create_task_group() as workers:
                for child in self._children:
                    workers.start_soon(self._keep, child, failed)
                workers.start_soon(self._announce, ready)
            group.cancel_scope.cancel()
        if failed:
            raise failed[0]
        return max(child.left for child in self._children)

    async def _announce(self, ready: Callable[[], Awaitable[None]]) -> None:
        for child in self._children:
            await _first(child.ready, self._stopping)
        if not self._stopping.is_set():
            await ready()

    async def _keep(self, child: _Child, failed: list[MootError]) -> None:
        """Run a worker, and replace it whenever it dies, until the server stops."""
        deaths = 0
        while not self._stopping.is_set():
            started = anyio.current_time()
            pid, code = await self._run(child)
            self._forget_metrics(pid)
            if self._stopping.is_set():
                return
            if not child.ready.is_set():
                failed.append(MootError(f"Worker {child.index} of the server could not start.", fix="See its error message above."))
                await self._stop()
                return
            deaths = 0 if anyio.current_time() - started > HEALTHY else deaths + 1
            pause = PAUSES[min(deaths, len(PAUSES) - 1)]
            log.error("worker %d (process %d) ended with code %s; it starts again in %g seconds", child.index, pid, code, pause)
            await _first(self._stopping, seconds=pause)

    async def _run(self, child: _Child) -> tuple[int, int | None]:
        """Run a worker once. Return its process id and exit code."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.set_inheritable(True)
            environment = {**os.environ, WORKER: str(theirs.fileno()), METRICS: str(self._metrics)}
            process = await foreground(self._command, env=environment, fds=(theirs.fileno(),))
            theirs.close()
            async with process, await anyio.abc.SocketStream.from_socket(ours) as stream:
                child.channel = Channel(stream)
                await self._talk(child, child.channel)
                child.channel = None
                await process.wait()
        return process.pid, process.returncode

    async def _talk(self, child: _Child, channel: Channel) -> None:
        await channel.send({"index": child.index, "port": self._port, "leader": self._leader})
        if self._stopping.is_set():  # since before the worker had a channel
            await channel.send({"stop": "gracefully"})
        while (message := await channel.receive()) is not None:
            if message.get("ready"):
                child.ready.set()
            if isinstance(follows := message.get("follows"), bool):
                self._follows(follows)
            if isinstance(left := message.get("left"), int):
                child.left = left

    async def _stop(self) -> None:
        """Ask all workers to stop: gracefully the first time, at once the second time."""
        how = "now" if self._stopping.is_set() else "gracefully"
        self._stopping.set()
        for child in self._children:
            if child.channel is not None:
                await child.channel.send({"stop": how})

    async def _handle_signals(self) -> None:
        with anyio.open_signal_receiver(*STOPS) as signals:
            async for _ in signals:
                await self._stop()

    def _forget_metrics(self, pid: int) -> None:
        """Remove the gauges of a dead worker, such as its open streams. Its counters remain."""
        for path in self._metrics.glob(f"gauge_live*_{pid}.db"):
            path.unlink(missing_ok=True)


async def _first(*events: anyio.Event, seconds: float | None = None) -> None:
    """Wait for the first of the events, at most for a number of seconds."""
    with anyio.move_on_after(seconds):
        async with anyio.create_task_group() as group:

            async def wait(event: anyio.Event) -> None:
                await event.wait()
                group.cancel_scope.cancel()

            for event in events:
                group.start_soon(wait, event)


@contextmanager
def private_folder() -> Generator[Path]:
    """Create a folder that only this user can read, with a path short enough for a Unix socket, and remove it at the end."""
    with tempfile.TemporaryDirectory(prefix="moot-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
