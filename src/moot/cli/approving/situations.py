"""What is known around an approval while a person decides, and what came of asking."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from moot.engine import Engine
from moot.errors import MootError
from moot.guard.roots import folders
from moot.runtime.answers import check, rule
from moot.runtime.explaining import explain
from moot.runtime.looking import Looked, look
from moot.types.approval import Answer, Approval
from moot.types.conversation import Conversation

__all__ = ["Decided", "How", "Situation", "seconds_left", "settled", "situation"]

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
    """The command that comes back to it, or what becomes of it."""
    now: Callable[[], int]
    """Wall time, ms."""
    answered: Callable[[], Awaitable[Answer | None]]
    """What somebody else has answered meanwhile."""
    check: Callable[[Answer], Awaitable[str]]
    """Why an answer can't be given; empty = it can."""
    explain: Callable[[bytes], Awaitable[str]]
    """What a model says of the call with these arguments. Raises MootError."""
    look: Callable[[bytes], Awaitable[Looked]]
    """The call with these arguments, as policy and the files see it."""


def situation(engine: Engine, approval: Approval, conversation: Conversation) -> Situation:
    """The situation of an approval that a run of this engine's store has asked."""
    step = _STEP.search(approval.id)
    return Situation(
        directory=conversation.directory,
        asked_by=" · ".join(filter(None, (conversation.agent, f"step {step[1]}" if step else ""))),
        resume=f"moot chat resume {conversation.id[:13]}" if approval.outside is None else "its program waits here",
        now=lambda: engine.runtime.now() // 1000,
        answered=partial(_answered, engine, approval.id),
        check=partial(_problem, engine, approval.id),
        explain=partial(explain, engine.runtime, approval),
        look=partial(_look, engine, approval, conversation),
    )


async def _look(engine: Engine, approval: Approval, conversation: Conversation, arguments: bytes) -> Looked:
    same = arguments == approval.arguments
    parts = approval.parts if same else (await rule(engine.runtime, approval, arguments)).parts
    directory = Path(conversation.directory)
    return await look(arguments, parts, folders(conversation.allowed_uris) or (directory,), directory)


async def settled(approval: Approval, situation: Situation) -> Decided | None:
    """What became of it without the person here; None = it is still open."""
    if seconds_left(approval, situation) == 0:
        return Decided(None, how="expired")
    return Decided(None, how="elsewhere") if await situation.answered() is not None else None


def seconds_left(approval: Approval, situation: Situation) -> int | None:
    """Until it expires; None = it never does."""
    return None if approval.expires_at is None else max(0, -(-(approval.expires_at - situation.now()) // 1000))


async def _answered(engine: Engine, approval: str) -> Answer | None:
    stored = await engine.store.records.approval(approval)
    return stored.answer if stored is not None else None


async def _problem(engine: Engine, approval: str, answer: Answer) -> str:
    try:
        await check(engine.runtime, approval, answer)
    except MootError as error:
        return f"{error.message}; {error.fix}" if error.fix else error.message
    return ""
