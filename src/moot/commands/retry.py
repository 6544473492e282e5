"""`/retry`."""

from __future__ import annotations

from collections.abc import Sequence

from moot.commands.command import Answer, Choice, Reply, Situation
from moot.errors import UsageError
from moot.types.run import RunStatus

__all__ = ["Retry"]

_INTERRUPTED = frozenset[RunStatus]({"interrupted", "waiting"})


class Retry:
    help = "take up an interrupted or waiting answer, else answer the last prompt again"
    argument = ""

    async def choices(self, situation: Situation) -> Sequence[Choice]:
        return ()

    async def run(self, situation: Situation, argument: str) -> Sequence[Reply]:
        if situation.conversation is None:
            raise UsageError("nothing was asked yet")
        runs = await situation.engine.store.records.runs(conversation=situation.conversation, statuses=_INTERRUPTED)
        return [Answer(resume=runs[0].id if runs else None)]
