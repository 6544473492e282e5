"""The connection to the editor: one JSON-RPC message per line on stdin and stdout, and errors in plain words."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import anyio
from acp import RequestError

from moot.errors import MootError, NotFound, StoreError, UsageError
from moot.types.canonical import JsonObject

LONGEST = 64 * 1024 * 1024
"""Maximum length of a message in bytes. Pictures are in base64, so this allows for 48 MiB of content."""

_PIECE = 64 * 1024
_ANSWERING = 5.0
"""Maximum time in seconds to answer the last requests after the editor has closed stdin."""
PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS, FAILED = -32700, -32600, -32601, -32602, -32603
SIGN_IN, NOT_FOUND = -32000, -32002


def request_error(error: MootError) -> RequestError:
    """Return the response to a request that failed with one of moot's errors."""
    code = NOT_FOUND if isinstance(error, NotFound) else INVALID_PARAMS if isinstance(error, UsageError) else FAILED
    return RequestError(FAILED if isinstance(error, StoreError) else code, error.advice())


class Lines:
    """The `Transport` of the protocol's library over two asyncio streams.

    Lines that are not messages are answered with an error. Messages are written in the order in which `send` was called.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._read = bytearray()
        self._writing = asyncio.Lock()
        self._unanswered: set[str] = set()
        """Ids of the requests that get an answer before the connection ends. Prompts are not among them."""
        self._answered = asyncio.Event()

    async def receive(self) -> JsonObject | None:
        """Return the next message, or None at the end of the input."""
        while (line := await self._line()) is not None:
            if not line.strip():
                continue
            try:
                message: object = json.loads(line)
            except (ValueError, RecursionError) as error:
                await self._refuse(PARSE_ERROR, f"The line is not valid JSON: {error}.")
                continue
            if not isinstance(message, dict):
                await self._refuse(INVALID_REQUEST, "Expected a JSON object in each line.")
            elif not isinstance(message.get("method", ""), str) or not message.keys() & {"method", "id"}:  # pyright: ignore[reportUnknownMemberType]
                await self._refuse(INVALID_REQUEST, "The message has neither a method nor an id.")
            else:
                found = cast("JsonObject", message)
                if "id" in found and found.get("method") not in (None, "session/prompt"):
                    self._unanswered.add(str(found["id"]))
                return found
        with anyio.move_on_after(_ANSWERING):
            while self._unanswered:
                self._answered.clear()
                await self._answered.wait()
        return None

    async def _line(self) -> bytes | None:
        """Return the next line, or None at the end. A line that is too long is answered and skipped."""
        searched, skipping = 0, False
        while True:
            end = self._read.find(b"\n", searched)
            if end >= 0:
                line = bytes(self._read[:end])
                del self._read[: end + 1]
                if not skipping:
                    return line
                searched, skipping = 0, False
                continue
            searched = len(self._read)
            if searched > LONGEST:
                if not skipping:
                    await self._refuse(INVALID_REQUEST, f"The message is larger than {LONGEST >> 20} MiB.")
                self._read.clear()
                searched, skipping = 0, True
            piece = await self._reader.read(_PIECE)
            if not piece:
                return None  # an incomplete line is not a message
            self._read += piece

    async def _refuse(self, code: int, message: str) -> None:
        await self.send({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}})

    async def send(self, message: JsonObject) -> None:
        """Write a message. Raise ConnectionError if the editor is gone."""
        if isinstance(error := message.get("error"), dict):
            message = {**message, "error": _plain(error)}
        data = json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        async with self._writing:
            self._writer.write(data)
            await self._writer.drain()
        if "method" not in message:
            self._unanswered.discard(str(message.get("id")))
            self._answered.set()

    async def close(self) -> None:
        self._writer.close()


def _plain(error: JsonObject) -> JsonObject:
    """Return an error of the protocol's library with a message that says what is wrong. Its details may not be valid JSON."""
    code, message = error.get("code"), str(error.get("message") or "Failed")
    data = error.get("data")
    details = data if isinstance(data, dict) else {}
    if code == INVALID_PARAMS and isinstance(problems := details.get("errors"), list):
        found = [_problem(cast("JsonObject", one)) for one in problems[:5] if isinstance(one, dict)]
        message = f"Invalid parameters: {'; '.join(found)}."
    elif code == UNKNOWN_METHOD:
        message = f"Unknown method {str(details.get('method'))!r}."
    elif code == FAILED and isinstance(text := details.get("details"), str) and text:
        message = f"Internal error: {text}"
    return {"code": code, "message": message}


def _problem(problem: JsonObject) -> str:
    place = problem.get("loc")
    # the names of the possible types of a value come after its place
    names = [str(name) for name in cast("tuple[object, ...]", place)] if isinstance(place, tuple | list) else []
    return f"{'.'.join(names) or 'params'}: {problem.get('msg') or 'invalid'!s}"


@asynccontextmanager
async def standard_streams() -> AsyncGenerator[Lines]:
    """Use stdin and stdout for the protocol during the block. Everything else that is written to stdout then goes to stderr.

    Raise UsageError if they are not pipes.
    """
    loop = asyncio.get_running_loop()
    sys.stdout.flush()
    output = os.dup(1)
    os.dup2(2, 1)
    try:
        reader = asyncio.StreamReader(limit=_PIECE)
        try:
            incoming, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
            outgoing, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(os.dup(output), "wb", 0))
        except (ValueError, OSError) as error:
            raise UsageError(
                "stdin and stdout must be pipes.", fix="Editors start this command themselves; see docs/editors.md."
            ) from error
        try:
            yield Lines(reader, asyncio.StreamWriter(outgoing, protocol, None, loop))
        finally:
            incoming.close()
            outgoing.close()
    finally:
        os.dup2(output, 1)
        os.close(output)
