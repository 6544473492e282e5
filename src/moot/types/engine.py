"""The seam of the engine: who may run what, and what a watcher sees."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from moot.types.approval import Answer
from moot.types.event import Event
from moot.types.run import Prompt, Run, Submitted


class Runs(Protocol):
    async def submit(self, prompt: Prompt) -> Submitted:
        """Stores the prompt and starts (or queues) its run in the background. Raises Busy, UsageError, StoreError."""
        ...

    async def resume(self, run: str) -> Run:
        """Takes up an interrupted, waiting or orphaned run here. Raises Busy when its owner lives, UsageError when it has ended."""
        ...

    async def cancel(self, run: str) -> None:
        """Stops it wherever it runs; nothing happens when it has ended."""
        ...

    async def answer(self, approval: str, answer: Answer) -> None:
        """First answer wins; a parked run goes on.

        Raises NotFound, Busy, UsageError (what it wants can't be given) and ConfigError (the rule can't be written).
        """
        ...

    async def wait(self, run: str) -> Run:
        """The run once it is finished, failed, cancelled, waiting or interrupted."""
        ...


class Tail(Protocol):
    def watch(self, conversation: str, *, after: int = 0) -> AsyncGenerator[tuple[Event, ...], None]:
        """Every event behind `after`, once and in order, in an async generator that the caller closes with `aclosing`; never ends."""
        ...
