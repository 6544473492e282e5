"""A scripted model endpoint: real HTTP on 127.0.0.1, every dialect, every kind of failure.

In a test:

    async with ScriptedServer([Reply(text="Hello."), Reply(tool_calls=[ToolCall("read_file", {"path": "a.txt"})])]) as server:
        settings = server.provider("mine")                        # a ProviderSettings; dialect="google" for another dialect
        ...
        assert server.requests[0].json["model"] == "scripted"     # all requests are recorded with headers, bytes and time

Replies are used in order. A reply with `when` only answers requests whose last user text contains that text; a reply with `times=0` can be
used any number of times. Failures are replies too: `Reply(status=429, retry_after=1)`, `Reply(text="long …", cut_at_byte=200)`,
`Reply(raw=b"<html>")`, `Reply(text="…", hang_at=2)`. When no reply is left, the response is an error with status 400. A script can also be
a function that returns the reply to a request.

With `obey=True`, the model follows any instruction it reads, in user texts and tool outputs alike: a line `call NAME {json}` becomes a tool
call, `say TEXT` becomes the answer. This is the worst possible model, to test the damage that a model can do.

It can run as a process that prints its URL on the first line; `GET /_requests` returns the received requests, and `POST /_release` lets the
responses so far continue if they hang (see `moot.testing.process`):

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
from typing import Any

from aiohttp import web

from moot.testing._frames import content_type, frames
from moot.testing._server import Recorded, Server, objects, text_of
from moot.testing.script import Reply, ToolCall, replies_from_json

Script = Sequence[Reply] | Callable[[Recorded], Reply]

_CALL = re.compile(r"^\s*call (\w+) (\{.*\})\s*$", re.IGNORECASE | re.MULTILINE)
_SAY = re.compile(r"^\s*say (.+)$", re.IGNORECASE | re.MULTILINE)


class ScriptedServer(Server):
    """A server that answers from a script in the dialect of the path.

    The paths are `/chat/completions`, `/responses`, `/messages` (with or without `/v1`), `/v1beta/models/NAME:streamGenerateContent`,
    `/api/chat`, and OpenAI's paths for images and transcripts. It also lists `models` in each dialect."""

    def __init__(self, script: Script = (), *, obey: bool = False, models: Sequence[str] = ("scripted",), port: int = 0) -> None:
        super().__init__(port=port)
        self.models = tuple(models)
        self._script = script
        self._used: dict[int, int] = {}
        self._obey = obey
        self._ids = (str(number) for number in itertools.count(1))

    async def respond(self, recorded: Recorded, request: web.Request) -> web.StreamResponse:
        reply = obey_messages(recorded) if self._obey else self._choose(recorded)
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
        body, size = b"".join(made), reply.write_size
        pieces = [body[start : start + size] for start in range(0, len(body), size)] if size else made
        ends = list(itertools.accumulate(map(len, pieces)))
        writes = [piece[: end - (stop - len(piece))] for piece, stop in zip(pieces, ends, strict=True) if stop - len(piece) < end]
        for number, data in enumerate(writes):
            if number == reply.hang_at and not await self.hang(recorded, request):
                return
            if reply.delay:
                await asyncio.sleep(reply.delay)
            yield data
        if reply.cut_at_byte is not None:
            raise BrokenPipeError
        if reply.hang_at is not None and reply.hang_at >= len(writes):
            await self.hang(recorded, request)


def obey_messages(recorded: Recorded) -> Reply:
    """Return the reply of a model that follows all instructions since its last message."""
    texts: list[str] = []
    for message in reversed(recorded.messages):
        if message.get("role") == "assistant":
            break
        texts.append(_everything(message.get("content")))
    text = "\n".join(reversed(texts))
    calls = [ToolCall(name, arguments) for name, arguments in _CALL.findall(text)]
    answers = [line.strip() for line in _SAY.findall(text)]
    return Reply(text=" ".join(answers) or ("" if calls else "Done."), tool_calls=calls)


def _everything(content: Any) -> str:
    """Return the text of a message including all tool outputs."""
    if not isinstance(content, list):
        return text_of(content)
    return "\n".join(_everything(part["content"]) if "content" in part else str(part.get("text", "")) for part in objects(content))


async def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until stopped. The first line on stdout is the URL."""
    parser = argparse.ArgumentParser(prog="python -m moot.testing.scripted", description="A scripted model endpoint on 127.0.0.1.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path, help="JSON file that contains a list of replies.")
    parser.add_argument("--obey", action="store_true", help="Follow all instructions in the messages.")
    parser.add_argument("--models", default="scripted", help="Comma-separated model names.")
    options = parser.parse_args(arguments)
    script = replies_from_json(options.script.read_bytes()) if options.script else [Reply(text="Hello.", times=0)]
    async with ScriptedServer(script, obey=options.obey, models=options.models.split(","), port=options.port) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
