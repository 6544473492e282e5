"""A provider that streams the answer that the prompt describes, in the openai-chat dialect, as fast as possible or at a steady pace.

`bench chunks=5000 rounds=2` in the last user message requests two calls of the tool `todo`, one per step, then 5,000 chunks of text. Each
frame is encoded once and is a separate HTTP chunk, as vendors send them. One write contains 32 frames. With `delay=10` after it, each chunk
of text is a separate write, 10 ms after the previous one. A request that offers the tool `bench_add` gets calls of that tool.

    python benchmarks/upstream.py PORT
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from contextlib import suppress
from functools import cache

import uvloop

SCRIPT = re.compile(rb"bench chunks=(\d+) rounds=(\d+)(?: delay=(\d+))?")
WRITE = 32
"""Frames per write."""
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def word(number: int) -> str:
    return f"{number:05d} "


def text(chunks: int) -> str:
    """Return the complete text of a stream, to compare answers with."""
    return "".join(word(number) for number in range(chunks))


def frame(delta: dict[str, object], finish: str | None = None, **more: object) -> bytes:
    choices = [] if "usage" in more else [{"index": 0, "delta": delta, "finish_reason": finish}]
    value = {"id": "bench-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "bench", "choices": choices, **more}
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


def wire(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def tail(finish: str, output: int) -> list[bytes]:
    usage = {"prompt_tokens": 10, "completion_tokens": output, "total_tokens": 10 + output}
    return [wire(frame({}, finish)), wire(frame({}, usage=usage)), wire(b"data: [DONE]\n\n"), b"0\r\n\r\n"]


@cache
def frames_of(chunks: int) -> list[bytes]:
    """Return the frames of a text stream: the start, one per chunk, and the end."""
    opening = wire(frame({"role": "assistant", "content": ""}))
    return [opening, *(wire(frame({"content": word(number)})) for number in range(chunks)), b"".join(tail("stop", chunks))]


@cache
def answer(chunks: int) -> list[bytes]:
    """Return the same stream as writes of several frames."""
    frames = frames_of(chunks)
    return [b"".join(frames[at : at + WRITE]) for at in range(0, len(frames), WRITE)]


@cache
def call(number: int, tool: str) -> list[bytes]:
    """Return the frames of a tool call. Arguments differ between calls, so that no limit on repetitions stops the run."""
    added = tool == "bench_add"
    arguments = json.dumps({"a": number, "b": 2} if added else {"todos": [{"content": f"item {number}", "status": "pending"}]})
    opening = {"index": 0, "id": f"call_{number}", "type": "function", "function": {"name": tool, "arguments": ""}}
    frames = [wire(frame({"role": "assistant", "content": None, "tool_calls": [opening]}))]
    frames.append(wire(frame({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]})))
    return [b"".join(frames + tail("tool_calls", 5))]


def script(body: bytes) -> tuple[list[bytes], float]:
    """Return the response as writes, and the seconds between them: a call if there were fewer outputs than rounds after the prompt,
    otherwise the text."""
    prompts = list(SCRIPT.finditer(body))
    if not prompts:
        return answer(1), 0.0
    chunks, rounds, delay = int(prompts[-1][1]), int(prompts[-1][2]), int(prompts[-1][3] or 0)
    done = len(re.findall(rb'"role":\s*"tool"', body[prompts[-1].end() :]))
    if done < rounds:
        return call(done, "bench_add" if b'"bench_add"' in body else "todo"), 0.0
    return (frames_of(chunks), delay / 1000) if delay else (answer(chunks), 0.0)


class Paced:
    """Writer of one stream at a steady pace. It uses timers instead of a task."""

    def __init__(self, writer: asyncio.StreamWriter, frames: list[bytes], delay: float) -> None:
        self.loop = asyncio.get_running_loop()
        self.writer, self.frames, self.delay = writer, frames, delay
        self.begun, self.at = self.loop.time(), 1
        self.ended = self.loop.create_future()
        writer.write(frames[0])
        self.write()

    def write(self) -> None:
        if self.writer.is_closing():
            self.ended.set_result(None)
            return
        self.writer.write(self.frames[self.at])
        if self.at < len(self.frames) - 2:
            self.loop.call_at(self.begun + self.at * self.delay, self.write)
        else:
            self.writer.write(self.frames[-1])
            self.ended.set_result(None)
        self.at += 1


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length:\s*(\d+)", head)
            body = await reader.readexactly(int(length[1])) if length else b""
            if head.startswith(b"GET"):
                writer.write(
                    b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 31\r\n\r\n{"object":"list","data":[   ]}\n'
                )
                continue
            writer.write(HEAD)
            writes, delay = script(body)
            if delay:
                await Paced(writer, writes, delay).ended
                continue
            for data in writes:
                writer.write(data)
                await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main(port: int) -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=1024)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        uvloop.run(main(int(sys.argv[1])))
