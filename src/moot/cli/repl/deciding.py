"""Approvals that a run waits for: ask the user and pass the answers on."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from moot.cli.output import Output
from moot.cli.repl.face import ConversationView
from moot.engine import Engine
from moot.errors import Busy, NotFound
from moot.plugins.registry import attribute
from moot.types.approval import Answer, Approval
from moot.types.conversation import Conversation
from moot.types.run import Run

if TYPE_CHECKING:
    from moot.cli.approving.situations import Decision

__all__ = ["ask_approvals", "decide"]

_CONTEXT, _DECIDE = "moot.cli.approving.situations:approval_context", "moot.cli.approving.deciding:decide"
"""Loaded by path for the first approval: the first prompt does not wait for tools and pydantic."""


async def decide(engine: Engine, approval: Approval, conversation: Conversation, output: Output, *, draft: str = "") -> Decision:
    """Ask the user about one approval and return their decision without storing it."""
    context = attribute(_CONTEXT)(engine, approval, conversation)
    return await attribute(_DECIDE)(approval, context, output, draft=draft)


async def ask_approvals(engine: Engine, view: ConversationView, run: Run) -> Literal["asked", "nothing", "later"]:
    """Ask for all open approvals. Return "later" if the user postpones the decision; the run keeps waiting."""
    conversation = await engine.store.conversations.get(run.conversation)
    approvals = [one for one in await engine.store.records.approvals(run=run.id) if not one.by_client]
    for approval in approvals:
        decision = await view.decide(approval, conversation)
        match decision.outcome:
            case "stop":
                await engine.runs.cancel(run.id)
                break
            case "later":
                return "later"
            case "expired" | "elsewhere":
                await _resume(engine, run.id)
            case _:
                await _answer(engine, view, run.id, approval.id, decision.answer)
    return "asked" if approvals else "nothing"


async def _answer(engine: Engine, view: ConversationView, run: str, approval: str, answer: Answer | None) -> None:
    if answer is None:
        return
    try:
        await engine.runs.answer(approval, answer)
    except (Busy, NotFound) as error:  # expired or answered elsewhere meanwhile
        view.failed(error)
        await _resume(engine, run)


async def _resume(engine: Engine, run: str) -> None:
    """Let a waiting run continue after its approval was answered elsewhere or expired."""
    if (await engine.store.records.run(run)).status == "waiting":
        with suppress(Busy):  # another process does it
            await engine.runs.resume(run)
