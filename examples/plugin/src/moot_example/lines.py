"""The channel `lines`: a line-based chat over a Unix socket, for `socat - UNIX-CONNECT:/path`.

The first line is the user's name; each further line is a message. moot's replies end with a line that contains a single full stop.
When moot asks for approval, the next line is the answer: `yes`, or `no` and a reason.

    channels:
      lines: {path: /run/user/1000/moot.sock, mode: ask}
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio

from moot.errors import ConfigError, MootError
from moot.guard.terminal import clean
from moot.types.approval import Answer, Approval
from moot.types.canonical import JsonObject
from moot.types.channel import ChannelRuntime
from moot.types.message import Message, text_of, text_part

LINE = 64 * 1024
"""Maximum length of a line in bytes; a longer line ends the connection."""
END = b".\n"


class Lines:
    """A complete channel: `serve`. `trial` and `client` are used by the conformance suite and by tests."""

    name = "lines"

    async def serve(self, runtime: ChannelRuntime, settings: JsonObject) -> None:
        path = _path(settings)
        async with anyio.create_task_group() as group:

            def welcome(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                group.start_soon(_talk, runtime, Line(reader, writer))

            try:
                server = await asyncio.start_unix_server(welcome, path, limit=LINE)
                await anyio.Path(path).chmod(0o600)
            except OSError as error:
                raise ConfigError(f"channels.lines.path: can't listen at {path!r}: {error.strerror}") from error
            try:
                await anyio.sleep_forever()
            finally:
                server.close()
                group.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await anyio.Path(path).unlink(missing_ok=True)

    def trial(self, folder: Path) -> JsonObject:
        return {"path": str(folder / "lines.sock")}

    @asynccontextmanager
    async def client(self, settings: JsonObject, who: str) -> AsyncGenerator[Client, None]:
        line = await _connected(_path(settings))
        try:
            await line.send(who.encode() + b"\n")
            yield Client(line)
        finally:
            line.close()


class Line:
    """A connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def receive(self, end: bytes = b"\n") -> str:
        """Return everything before `end`. Raise EOFError at the end of the input, ValueError if the line is too long."""
        try:
            return (await self._reader.readuntil(end)).decode("utf-8", "replace").removesuffix(end.decode())
        except asyncio.LimitOverrunError as error:
            raise ValueError("the line is too long") from error

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def close(self) -> None:
        self._writer.close()


class Client:
    """A user of the channel, for tests."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def say(self, text: str) -> None:
        await self._line.send(text.encode() + b"\n")

    async def hear(self) -> str:
        return await self._line.receive(b"\n" + END)


async def _connected(path: str) -> Line:
    with anyio.fail_after(5):
        while True:
            with suppress(OSError):  # not served yet
                return Line(*await asyncio.open_unix_connection(path))
            await anyio.sleep(0.01)


async def _talk(runtime: ChannelRuntime, line: Line) -> None:
    """Handle one connection until it ends."""
    try:
        who = (await line.receive()).strip()
        while True:
            if text := (await line.receive()).strip():
                await _say(line, await _reply(runtime, who, text, line))
    except (EOFError, ValueError, ConnectionError):
        pass  # disconnected, or a line was too long; submitted messages are stored
    finally:
        line.close()


async def _reply(runtime: ChannelRuntime, who: str, text: str, line: Line) -> str:
    try:
        submitted = await runtime.submit(who, (text_part(text),))
        message = await _wait_for_message(runtime, submitted.run.id, line)
    except MootError as error:
        return f"moot: {error.advice()}"
    return text_of(message.parts) or f"({message.status})"


async def _wait_for_message(runtime: ChannelRuntime, run: str, line: Line) -> Message:
    """Return the run's message after asking the user for all decisions."""
    while (await runtime.wait(run)).status == "waiting":
        approvals = await runtime.approvals(run)
        if not approvals:
            await anyio.sleep(0.05)  # answered elsewhere; continues soon
        for approval in approvals:
            await _say(line, _question(approval))
            with suppress(MootError):  # expired, or answered elsewhere
                await runtime.answer(approval.id, _decision(approval, (await line.receive()).strip()))
    return await runtime.message(run)


def _question(approval: Approval) -> str:
    if isinstance(approval.questions, list):
        questions = [question for question in approval.questions if isinstance(question, dict)]
        return "\n".join(str(question.get("text", "")) for question in questions)
    return f"{approval.tool} wants to run, yes or no?\n{approval.arguments.decode('utf-8', 'replace')}"


def _decision(approval: Approval, line: str) -> Answer:
    """Return the user's decision; only a plain `yes` approves."""
    if isinstance(approval.questions, list):
        return Answer(True, value=[[line] for _ in approval.questions])
    word, _, reason = line.partition(" ")
    return Answer(True) if word.lower() == "yes" and not reason else Answer(False, reason=reason.strip() or "denied by the user")


async def _say(channel: Line, text: str) -> None:
    # the text is shown on a terminal; a line with a single full stop would end it
    text = "\n".join(f"{line} " if line == "." else line for line in clean(text).split("\n"))
    await channel.send(text.encode("utf-8", "replace") + b"\n" + END)


def _path(settings: JsonObject) -> str:
    path = settings.get("path")
    if isinstance(path, str) and path.startswith("/"):
        return path
    raise ConfigError(f"channels.lines.path is {path!r}; expected the absolute path of a socket")
