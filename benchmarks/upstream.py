"""A provider that says what the prompt asks for, in the openai-chat shape, as fast as the socket takes it.

`bench chunks=5000 rounds=2` in the last user message: two calls of the tool `todo`, one a step, then 5,000 chunks of text. Every frame is
encoded once, and each travels in an HTTP chunk of its own, as vendors send them; 32 frames go into one write.

    python benchmarks/upstream.py PORT
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from contextlib import suppress
from functools import cache

SCRIPT = re.compile(rb"bench chunks=(\d+) rounds=(\d+)")
WRITE = 32
"""Frames in one write."""
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def word(number: int) -> str:
    return f"{number:05d} "


def text(chunks: int) -> str:
    """The whole answer of a stream, for checking."""
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
def answer(chunks: int) -> list[bytes]:
    """A stream of text, as writes."""
    frames = [wire(frame({"role": "assistant", "content": ""})), *(wire(frame({"content": word(number)})) for number in range(chunks))]
    frames += tail("stop", chunks)
    return [b"".join(frames[at : at + WRITE]) for at in range(0, len(frames), WRITE)]


@cache
def call(number: int) -> list[bytes]:
    """One call of the todo tool; each has other arguments, so that no repetition limit stops the run."""
    arguments = json.dumps({"todos": [{"content": f"item {number}", "status": "pending"}]})
    opening = {"index": 0, "id": f"call_{number}", "type": "function", "function": {"name": "todo", "arguments": ""}}
    frames = [wire(frame({"role": "assistant", "content": None, "tool_calls": [opening]}))]
    frames.append(wire(frame({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]})))
    return [b"".join(frames + tail("tool_calls", 5))]


def script(body: bytes) -> list[bytes]:
    """What to say to a request: a call while fewer outputs than rounds came after the prompt, else the text."""
    prompts = list(SCRIPT.finditer(body))
    if not prompts:
        return answer(1)
    chunks, rounds = int(prompts[-1][1]), int(prompts[-1][2])
    done = len(re.findall(rb'"role":\s*"tool"', body[prompts[-1].end() :]))
    return call(done) if done < rounds else answer(chunks)


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
            for data in script(body):
                writer.write(data)
                await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main(port: int) -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(int(sys.argv[1])))
