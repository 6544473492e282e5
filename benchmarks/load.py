"""A client that requests many answers from one server concurrently. It records bytes and times, and evaluates them after the last byte.

While the streams run, each read takes only an append to a list and a search for the first word, because the client shares the CPU with the
measured server.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import upstream

FIRST = upstream.word(0).encode()
END = b"0\r\n\r\n"


def request(port: int, path: str, body: bytes, headers: Mapping[str, str]) -> bytes:
    """Return an HTTP request as bytes: a POST, or a GET if there is no body."""
    lines = [f"{'POST' if body else 'GET'} {path} HTTP/1.1", f"host: 127.0.0.1:{port}", "accept: */*"]
    if body:
        lines += ["content-type: application/json", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def chat(prompt: str) -> bytes:
    """Return the body of the POST with which the AI SDK's client sends a first message."""
    message = {"id": uuid.uuid4().hex, "role": "user", "parts": [{"type": "text", "text": prompt}]}
    return json.dumps({"id": uuid.uuid4().hex, "trigger": "submit-message", "messages": [message]}).encode()


def completion(prompt: str) -> bytes:
    """Return the body of the same request for the provider itself, or for a relay in front of it."""
    return json.dumps({"model": "bench", "stream": True, "messages": [{"role": "user", "content": prompt}]}).encode()


class Stream(asyncio.Protocol):
    """One request and its complete answer."""

    def __init__(self, request: bytes) -> None:
        self.request = request
        self.pieces: list[bytes] = []
        self.edge = b""
        self.begun = 0.0
        self.first = 0.0
        self.ended = 0.0
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.transport = transport
        transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        self.pieces.append(data)
        seen = self.edge + data
        if not self.first and FIRST in seen:
            self.first = now
        self.edge = seen[-16:]
        if self.edge.endswith(END) and (self.edge == END or self.edge.endswith(b"\r\n" + END)):
            self.finish(now)

    def connection_lost(self, exc: Exception | None) -> None:
        self.finish(time.perf_counter())

    def finish(self, now: float) -> None:
        if not self.done.done():
            self.ended = now
            self.done.set_result(None)
            self.transport.close()


async def send(port: int, data: bytes, seconds: float) -> Stream:
    """Send a request and return its answer. An answer that does not end in time is cut off, so its text is incomplete."""
    begun = time.perf_counter()
    _, stream = await asyncio.get_running_loop().create_connection(lambda: Stream(data), "127.0.0.1", port)
    stream.begun = begun
    try:
        await asyncio.wait_for(asyncio.shield(stream.done), seconds)
    except TimeoutError:
        stream.transport.abort()
        await stream.done
    return stream


@dataclass(frozen=True)
class Load:
    """A load: the number of concurrent streams, their chunks and the interval between them, and the tool calls before the chunks."""

    streams: int
    chunks: int
    delay: int = 0
    rounds: int = 0

    @property
    def prompt(self) -> str:
        pace = f" delay={self.delay}" if self.delay else ""
        return f"bench chunks={self.chunks} rounds={self.rounds}{pace}"


@dataclass
class Outcome:
    """Times of all streams of one load, in ms."""

    wall: float = 0.0
    first: list[float] = field(default_factory=list[float])
    lag: list[float] = field(default_factory=list[float])
    """For each stream, its duration minus the time that the provider needs to send its chunks."""
    wrong: list[str] = field(default_factory=list[str])
    """A description of each answer that does not contain the whole text exactly once and every tool output."""


def body_of(pieces: Sequence[bytes]) -> tuple[str, str]:
    """Return the status line and the body of a response, with its HTTP chunks joined."""
    head, _, rest = b"".join(pieces).partition(b"\r\n\r\n")
    if b"chunked" in head.lower():
        parts, at = [], 0
        while (line := rest.find(b"\r\n", at)) >= 0:
            size = int(rest[at:line].split(b";")[0], 16)
            parts.append(rest[line + 2 : line + 2 + size])
            at = line + size + 4
        rest = b"".join(parts)
    return head.partition(b"\r\n")[0].decode("latin-1"), rest.decode("utf-8", "replace")


def said(body: str) -> tuple[str, int]:
    """Return the text of an answer in either dialect, and the number of its tool outputs."""
    text: list[str] = []
    outputs = 0
    for data in re.findall(r"^data: (\{.*\})$", body, re.MULTILINE):
        event = json.loads(data)
        if event.get("type") == "text-delta":
            text.append(event["delta"])
        outputs += event.get("type") == "tool-output-available"
        text += [choice["delta"].get("content") or "" for choice in event.get("choices", ())]
    return "".join(text), outputs


def judged(streams: Sequence[Stream], load: Load, ui: bool) -> Outcome:
    outcome, whole = Outcome(), upstream.text(load.chunks)
    for stream in streams:
        status, body = body_of(stream.pieces)
        text, outputs = said(body)
        if text != whole or (ui and outputs != load.rounds):
            outcome.wrong.append(f"{status or 'no answer'}: {len(text)} of {len(whole)} characters, {outputs} outputs; …{body[-200:]!r}")
            continue
        outcome.first.append((stream.first - stream.begun) * 1e3)
        outcome.lag.append((stream.ended - stream.begun) * 1e3 - load.delay * (load.chunks - 1))
    return outcome


async def run(port: int, path: str, load: Load, *, ui: bool, headers: Mapping[str, str], seconds: float = 120.0) -> Outcome:
    """Run all streams of a load concurrently and return the results."""
    make = chat if ui else completion
    requests = [request(port, path, make(load.prompt), headers) for _ in range(load.streams)]
    begun = time.perf_counter()
    streams = await asyncio.gather(*(send(port, data, seconds) for data in requests))
    wall = time.perf_counter() - begun
    outcome = judged(streams, load, ui)
    outcome.wall = wall
    return outcome
