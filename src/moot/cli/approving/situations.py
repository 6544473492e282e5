"""What is known around an approval while a person decides, and what came of asking."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

from moot.engine import Engine
from moot.errors import MootError
from moot.runtime.answers import check
from moot.types.approval import Answer, Approval
from moot.types.conversation import Conversation

__all__ = ["Decided", "How", "Situation", "situation"]

How: TypeAlias = Literal["answered", "elsewhere", "expired", "later", "stop"]

_STEP = re.compile(r"/tool:(\d+)\.")


@dataclass(frozen=True, slots=True)
class Decided:
    """What came of asking."""

    answer: Answer | None
    """To be given by `Runs.answer`; None unless `how` is answered."""
    draft: str = ""
    """What was typed that is no answer: it belongs into the composer."""
    how: How = "answered"
    """elsewhere: somebody else was faster · later: it stays open · stop: the run is to be cancelled."""


@dataclass(frozen=True, slots=True)
class Situation:
    """Around one approval."""

    directory: str
    """Where the call would run; untrusted."""
    asked_by: str
    """Agent and step."""
    resume: str
    """The command that comes back to it."""
    now: Callable[[], int]
    """Wall time, ms."""
    answered: Callable[[], Awaitable[Answer | None]]
    """What somebody else has answered meanwhile."""
    check: Callable[[Answer], Awaitable[str]]
    """Why an answer can't be given; empty = it can."""


def situation(engine: Engine, approval: Approval, conversation: Conversation) -> Situation:
    """The situation of an approval that a run of this engine's store has asked."""
    step = _STEP.search(approval.id)
    return Situation(
        directory=conversation.directory,
        asked_by=" · ".join(filter(None, (conversation.agent, f"step {step[1]}" if step else ""))),
        resume=f"moot chat resume {conversation.id[:13]}",
        now=lambda: engine.runtime.now() // 1000,
        answered=partial(_answered, engine, approval.id),
        check=partial(_problem, engine, approval.id),
    )


async def _answered(engine: Engine, approval: str) -> Answer | None:
    stored = await engine.store.records.approval(approval)
    return stored.answer if stored is not None else None


async def _problem(engine: Engine, approval: str, answer: Answer) -> str:
    try:
        await check(engine.runtime, approval, answer)
    except MootError as error:
        return f"{error.message}; {error.fix}" if error.fix else error.message
    return ""
