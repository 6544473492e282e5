"""Ask the user about a run's open approvals, one after another."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Literal, Protocol

from moot.cli.console.output import Output
from moot.engine import Engine
from moot.errors import Busy, MootError, NotFound, UsageError
from moot.features.family import asking_conversation
from moot.plugins.registry import attribute
from moot.types.approval import Approval
from moot.types.conversation import Conversation
from moot.types.run import Run

if TYPE_CHECKING:
    from moot.cli.approvals.decide import Decision

_CONTEXT, _DECIDE = "moot.cli.approvals.decide:approval_context", "moot.cli.approvals.decide:decide"
"""Import paths, loaded for the first approval, so that the first prompt does not wait for tools and pydantic."""


async def decide(engine: Engine, approval: Approval, conversation: Conversation, output: Output, *, draft: str = "") -> Decision:
    """Ask the user about one approval and return their decision without storing it."""
    context = attribute(_CONTEXT)(engine, approval, conversation)
    return await attribute(_DECIDE)(approval, context, output, draft=draft)


class ApprovalView(Protocol):
    """The part of a display that asks for approvals."""

    def failed(self, error: MootError) -> None: ...

    async def decide(self, approval: Approval, conversation: Conversation) -> Decision:
        """Ask the user and return their decision without storing it."""
        ...


async def ask_approvals(engine: Engine, view: ApprovalView, run: Run) -> Literal["asked", "edits", "nothing", "later"]:
    """Ask about all open approvals of a run and of its sub-agents, and apply the answers.

    Return "later" if the user postpones a decision, so that the run keeps waiting; "edits" if the user allowed all file edits in the
    conversation; "nothing" if there was no open approval; otherwise "asked".
    """
    edits = False
    approvals = [one for one in await engine.store.records.approvals(run=run.id, tree=True) if not one.by_client]
    for approval in approvals:
        decision = await view.decide(approval, await asking_conversation(engine.store, approval, run))
        match decision.outcome:
            case "stop":
                await engine.runs.cancel(run.id)
                break
            case "later":
                return "later"
            case "expired" | "elsewhere":
                await _resume(engine, run.id)
            case _ if decision.answer is not None:
                try:
                    await engine.runs.answer(approval.id, decision.answer)
                    edits = edits or decision.answer.option == "edits"
                except (Busy, NotFound) as error:  # expired or answered elsewhere in the meantime
                    view.failed(error)
                    await _resume(engine, run.id)
            case _:
                pass
    if not approvals and run.awaits == "person":  # everything was answered elsewhere, perhaps by a process that doesn't continue the run
        await _resume(engine, run.id)
    return "edits" if edits else "asked" if approvals else "nothing"


async def _resume(engine: Engine, run: str) -> None:
    """Let a waiting run continue after its approval was answered elsewhere or expired."""
    if (await engine.store.records.run(run)).status == "waiting":
        with suppress(Busy, UsageError):  # it was resumed in the meantime
            await engine.runs.resume(run)
