"""Watching a run to its end from the command line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from moot.cli.console.output import Output
from moot.cli.follow import Follower
from moot.testing.script import Reply
from moot.types.event import Event
from moot.types.message import Message
from moot.types.run import Run

pytestmark = pytest.mark.anyio

TEXT = " ".join(f"word{number}" for number in range(60))


class Lagging:
    """Display slowly, like a slow reader."""

    def __init__(self) -> None:
        self.said = ""

    async def event(self, event: Event) -> None:
        await asyncio.sleep(0.01)
        self.said += "".join(str(chunk["delta"]) for chunk in event.chunks if chunk["type"] == "text-delta")

    async def end(self, run: Run, message: Message | None) -> None:
        self.said += "."


class Delayed:
    """A part of the store with one slow method."""

    def __init__(self, part: Any) -> None:
        self._part = part

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)

    async def last_seq(self, conversation: str) -> int:
        await asyncio.sleep(0.3)
        return await self._part.last_seq(conversation)


async def test_following_shows_everything_even_if_the_end_is_known_late(stage: Callable[..., Any]) -> None:
    async with stage([Reply(TEXT, chunk_size=4, delay=0.001)]) as here:
        engine = here.engine
        parts = {name: getattr(engine.store, name) for name in ("conversations", "records")}
        slow: Any = SimpleNamespace(
            runs=engine.runs, tail=engine.tail, runtime=engine.runtime, store=SimpleNamespace(log=Delayed(engine.store.log), **parts)
        )
        show = Lagging()
        submitted = await here.submit("go on")
        code = await Follower(slow, Output(), show).follow(submitted.run, submitted.conversation, submitted.seq)
        assert (code, show.said) == (0, f"{TEXT}.")
