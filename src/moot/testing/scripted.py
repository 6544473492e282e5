"""A model's endpoint that says what a script tells it to: real HTTP on 127.0.0.1, every dialect, every kind of failure.

In a test:

    async with ScriptedServer([Reply(text="Hello."), Reply(tool_calls=[ToolCall("read_file", {"path": "a.txt"})])]) as server:
        settings = server.provider("mine")                        # a ProviderSettings; dialect="google" for another one
        ...
        assert server.requests[0].json["model"] == "scripted"     # every request is kept: headers, bytes, time

Replies are used up in order; one with `when` answers only a request whose last user text contains it; one with `times=0` is never used
up. A failure is a reply too: `Reply(status=429, retry_after=1)`, `Reply(text="long …", cut_at_byte=200)`, `Reply(raw=b"<html>")`,
`Reply(text="…", hang_at=2)`. When nothing is left the answer is a 400 that says so. Instead of a list, a function from request to reply.

With `obey=True` the model does whatever it reads, in a user's text or in a tool's output alike: a line `call NAME {json}` becomes a tool
call, `say TEXT` the answer. It is the worst model there is, for tests of what a model may bring about.

As a process, which prints its URL on the first line; `GET /_requests` shows what came in (see `moot.testing.process`):

    python -m moot.testing.scripted --port 0 --script replies.json        # [{"text": "Hello."}, {"status": 529}]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import re
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, cast

from aiohttp import web

from moot.testing._frames import content_type, frames
from moot.testing._serve import Recorded, Server, text_of
from moot.testing.script import Reply, ToolCall, replies_from_json

__all__ = ["Recorded", "Reply", "ScriptedServer", "ToolCall", "main"]

Script = Sequence[Reply] | Callable[[Recorded], Reply]

_CALL = re.compile(r"^\s*call (\w+) (\{.*\})\s*$", re.IGNORECASE | re.MULTILINE)
_SAY = re.compile(r"^\s*say (.+)$", re.IGNORECASE | re.MULTILINE)


class ScriptedServer(Server):
    """Answers from a script in the dialect of the path: `/chat/completions`, `/responses`, `/messages` (with `/v1` or without),
    `/v1beta/models/NAME:streamGenerateContent`, `/api/chat`; pictures and transcripts at OpenAI's paths for them. Lists `models` where each
    dialect has its list."""

    def __init__(self, script: Script = (), *, obey: bool = False, models: Sequence[str] = ("scripted",), port: int = 0) -> None:
        super().__init__(port=port)
        self.models = tuple(models)
        self._script = script
        self._used: dict[int, int] = {}
        self._obey = obey
        self._ids = (str(number) for number in itertools.count(1))

    async def respond(self, recorded: Recorded, request: web.Request) -> web.StreamResponse:
        reply = obeyed(recorded) if self._obey else self._choose(recorded)
        if reply.wait:
            await asyncio.sleep(reply.wait)
        if reply.status != 200:
            return self.refuse(recorded, reply)
        made = [reply.raw] if reply.raw is not None else frames(reply, recorded.dialect, recorded.model, self._ids)
        writes = self._writes(reply, made, recorded, request)
        return await self.send(
            recorded, request, writes, {"Content-Type": reply.content_type or content_type(recorded.dialect), **reply.headers}
        )

    def _choose(self, recorded: Recorded) -> Reply:
        if callable(self._script):
            return self._script(recorded)
        text = recorded.user_text
        for index, reply in enumerate(self._script):
            used = self._used.get(index, 0)
            if (not reply.times or used < reply.times) and reply.when in text:
                self._used[index] = used + 1
                return reply
        return Reply(status=400, error=f"the script has no reply left for request {len(self.requests)} (user text {text[:80]!r})")

    async def _writes(self, reply: Reply, made: list[bytes], recorded: Recorded, request: web.Request) -> AsyncIterator[bytes]:
        end = min(edge for edge in (reply.cut_at_byte, reply.end_at_byte, sys.maxsize) if edge is not None)
        for number, data in enumerate(_cut(_sized(made, reply.write_size), end)):
            if number == reply.hang_at:
                await self.hang(recorded, request)
                return
            if reply.delay:
                await asyncio.sleep(reply.delay)
            yield data
        if reply.cut_at_byte is not None:
            raise BrokenPipeError
        if reply.hang_at is not None:
            await self.hang(recorded, request)


def obeyed(recorded: Recorded) -> Reply:
    """What a model that does all it is told makes of the messages since its own last one."""
    told: list[str] = []
    for message in reversed(recorded.messages):
        if message.get("role") == "assistant":
            break
        told.append(_everything(message.get("content")))
    text = "\n".join(reversed(told))
    calls = [ToolCall(name, arguments) for name, arguments in _CALL.findall(text)]
    said = [line.strip() for line in _SAY.findall(text)]
    return Reply(text=" ".join(said) or ("" if calls else "Done."), tool_calls=calls)


def _everything(content: Any) -> str:
    """The text of a message with all tool outputs in it."""
    if not isinstance(content, list):
        return text_of(content)
    parts = [cast("dict[str, Any]", part) for part in cast("list[Any]", content) if isinstance(part, dict)]
    return "\n".join(_everything(part["content"]) if "content" in part else str(part.get("text", "")) for part in parts)


def _sized(made: list[bytes], size: int) -> list[bytes]:
    if not size:
        return made
    body = b"".join(made)
    return [body[start : start + size] for start in range(0, len(body), size)]


def _cut(writes: list[bytes], end: int) -> list[bytes]:
    kept: list[bytes] = []
    for data in writes:
        if end <= 0:
            break
        kept.append(data[:end])
        end -= len(data)
    return kept


async def main(arguments: Sequence[str] | None = None) -> None:
    """Serves until it is stopped; the first line on stdout is the URL."""
    parser = argparse.ArgumentParser(prog="python -m moot.testing.scripted", description="A scripted model endpoint on 127.0.0.1.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path, help="JSON file with a list of replies")
    parser.add_argument("--obey", action="store_true", help="do whatever is read")
    parser.add_argument("--models", default="scripted", help="names to list, joined by commas")
    options = parser.parse_args(arguments)
    script = replies_from_json(options.script.read_bytes()) if options.script else [Reply(text="Hello.", times=0)]
    async with ScriptedServer(script, obey=options.obey, models=options.models.split(","), port=options.port) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
