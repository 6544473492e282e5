"""The seam of the engine: running prompts and watching conversations."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from moot.types.approval import Answer
from moot.types.event import Event
from moot.types.run import Prompt, Run, Submitted


class Runs(Protocol):
    async def submit(self, prompt: Prompt) -> Submitted:
        """Store the prompt and start or queue its run in the background. Raise Busy, UsageError or StoreError."""
        ...

    async def resume(self, run: str) -> Run:
        """Resume an interrupted, waiting or orphaned run in this process. Raise Busy if its owner is alive, UsageError if it has ended."""
        ...

    async def cancel(self, run: str) -> None:
        """Stop the run, whichever process runs it; do nothing if it has ended."""
        ...

    async def answer(self, approval: str, answer: Answer) -> None:
        """Answer an approval; the first answer wins, and a parked run continues.

        Raise NotFound, Busy, UsageError if the answer is not possible, or ConfigError if the rule can't be written.
        """
        ...

    async def wait(self, run: str) -> Run:
        """Return the run once it is finished, failed, cancelled, waiting or interrupted."""
        ...


class Tail(Protocol):
    def watch(self, conversation: str, *, after: int = 0) -> AsyncGenerator[tuple[Event, ...], None]:
        """Yield every event after `after`, once and in order. Never ends; the caller closes the generator with `aclosing`."""
        ...
