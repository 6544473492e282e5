"""The context in which a user decides about an approval, and their decision."""

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

__all__ = ["ApprovalContext", "Decision", "Outcome", "approval_context", "resolved", "seconds_left"]

Outcome: TypeAlias = Literal["answered", "elsewhere", "expired", "later", "stop"]

_STEP = re.compile(r"/tool:(\d+)\.")


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of asking the user."""

    answer: Answer | None
    """The answer for `Runs.answer`; None unless `outcome` is answered."""
    draft: str = ""
    """Typed text that is not an answer; it belongs into the composer."""
    outcome: Outcome = "answered"
    """elsewhere: answered by someone else; later: the approval stays open; stop: cancel the run."""


@dataclass(frozen=True, slots=True)
class ApprovalContext:
    """The engine as the prompt of one approval needs it."""

    directory: str
    """Working directory of the call; untrusted."""
    requested_by: str
    """Agent and step."""
    resume: str
    """Instruction for answering later."""
    now: Callable[[], int]
    """Return the wall clock time in milliseconds."""
    answered: Callable[[], Awaitable[Answer | None]]
    """Return the stored answer, if there is one."""
    check: Callable[[Answer], Awaitable[str]]
    """Return why an answer is not valid; empty if it is."""
    explain: Callable[[bytes], Awaitable[str]]
    """Return a model's explanation of the call with these arguments. Raise MootError if that fails."""
    look: Callable[[bytes], Awaitable[Looked]]
    """Return a preview of the call with these arguments."""


def approval_context(engine: Engine, approval: Approval, conversation: Conversation) -> ApprovalContext:
    """Return the context of an approval in this engine's store."""
    step = _STEP.search(approval.id)
    return ApprovalContext(
        directory=conversation.directory,
        requested_by=" · ".join(filter(None, (conversation.agent, f"step {step[1]}" if step else ""))),
        resume=f"moot chat resume {conversation.id[:13]}" if approval.outside is None else "the agent keeps waiting",
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


async def resolved(approval: Approval, context: ApprovalContext) -> Decision | None:
    """Return the decision if the approval expired or was answered elsewhere; None if it is still open."""
    if seconds_left(approval, context) == 0:
        return Decision(None, outcome="expired")
    return Decision(None, outcome="elsewhere") if await context.answered() is not None else None


def seconds_left(approval: Approval, context: ApprovalContext) -> int | None:
    """Return the seconds until the approval expires; None if it never does."""
    return None if approval.expires_at is None else max(0, -(-(approval.expires_at - context.now()) // 1000))


async def _answered(engine: Engine, approval: str) -> Answer | None:
    stored = await engine.store.records.approval(approval)
    return stored.answer if stored is not None else None


async def _problem(engine: Engine, approval: str, answer: Answer) -> str:
    try:
        await check(engine.runtime, approval, answer)
    except MootError as error:
        return f"{error.message} {error.fix}".rstrip()
    return ""
