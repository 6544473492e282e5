"""`moot chat show --raw`: the raw data exchanged with the vendor, frame by frame."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from moot.cli.output import Output
from moot.convert.events import direction, raw_json
from moot.guard.terminal import visible
from moot.types.canonical import JsonObject
from moot.types.event import Event
from moot.types.exchange import Exchange
from moot.types.message import Message
from moot.types.store import Store

__all__ = ["show_raw"]

_PAGE = 512


async def show_raw(store: Store, conversation: str, messages: Sequence[Message] | None, output: Output, *, json: bool) -> None:
    """Print the frames of these messages, or of all: with headings on a terminal, only the vendor's bytes in a pipe."""
    of_runs = None if messages is None else {message.run for message in messages if message.run is not None}
    places = None if messages is None else {message.first_seq for message in messages if message.run is None}
    shown = _Json(output, conversation) if json else _Screen(output, store) if output.stdout_terminal else _Pipe()
    async with aclosing(_frames(store, conversation)) as frames:
        async for event in frames:
            if of_runs is None or event.run in of_runs or (places is not None and event.run is None and event.seq in places):
                await shown.frame(event)
    await shown.end()


async def _frames(store: Store, conversation: str) -> AsyncGenerator[Event, None]:
    after = 0
    while page := await store.log.read(conversation, after=after, limit=_PAGE):
        for event in page:
            if event.raw is not None:
                yield event
        after = page[-1].seq


class _Pipe:
    """Writer of the bytes received from the vendor, without what was sent, so that other programs can parse them."""

    async def frame(self, event: Event) -> None:
        if direction(event) == "in":
            assert event.raw is not None
            sys.stdout.buffer.write(event.raw)

    async def end(self) -> None:
        sys.stdout.buffer.flush()


class _Json:
    """Writer of one JSON document, written while reading, because the raw data may be larger than memory."""

    def __init__(self, output: Output, conversation: str) -> None:
        self._output = output
        self._conversation = conversation
        self._started = False

    async def frame(self, event: Event) -> None:
        assert event.raw is not None
        value: JsonObject = {"seq": event.seq, "at": event.at, "run": event.run, "kind": event.kind, "exchange": event.exchange}
        await self._output.stream(self._lead() + self._output.to_json({**value, "dir": direction(event), **raw_json(event.raw)}))

    async def end(self) -> None:
        started = self._started
        await self._output.stream(f'{"" if started else self._lead()}],"conversation":{self._output.to_json(self._conversation)}}}\n')

    def _lead(self) -> str:
        lead, self._started = "," if self._started else '{"data":[', True
        return lead


class _Screen:
    """Writer for terminals, with each frame below a heading. Control characters are made visible."""

    def __init__(self, output: Output, store: Store) -> None:
        self._output = output
        self._store = store
        self._exchange: str | None = None

    async def frame(self, event: Event) -> None:
        if event.exchange != self._exchange:
            self._exchange = event.exchange
            exchange = await self._store.records.exchange(event.exchange) if event.exchange is not None else None
            self._output.data(self._output.styled(f"── {_title(event, exchange)}", "bold") + "\n")
        assert event.raw is not None
        arrow = "→" if direction(event) == "out" else "←"
        self._output.data(self._output.styled(f"{event.seq:>6} {_clock(event.at)} {arrow}", "dim") + "\n" + _spelled(event.raw))

    async def end(self) -> None:
        if self._exchange is None:
            self._output.say("moot: no raw data", "dim")


def _title(event: Event, exchange: Exchange | None) -> str:
    if exchange is None:
        return visible(event.kind)
    facts = [exchange.purpose, exchange.id.rpartition(":")[2], exchange.converter, f"{exchange.model}@{exchange.provider}".strip("@")]
    return visible(" · ".join(fact for fact in [*facts, exchange.ended or "open"] if fact))


def _clock(at: int) -> str:
    seconds, micros = divmod(at, 1_000_000)
    return f"{time.strftime('%H:%M:%S', time.localtime(seconds))}.{micros // 1000:03d}"


def _spelled(raw: bytes) -> str:
    """Format a frame as indented lines, without trailing empty lines."""
    text = visible(raw.decode("utf-8", "backslashreplace")).rstrip("\n")
    return "".join(f"       {line}\n" for line in text.split("\n"))
