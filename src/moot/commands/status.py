"""`/status`."""

from __future__ import annotations

from collections.abc import Sequence

from moot.commands.command import Choice, Reply, Say, Situation
from moot.types.conversation import Conversation

__all__ = ["Status", "dollars"]

_NANO = 1e9


class Status:
    help = "where things stand: conversation, model, mode, figures"
    argument = ""

    async def choices(self, situation: Situation) -> Sequence[Choice]:
        return ()

    async def run(self, situation: Situation, argument: str) -> Sequence[Reply]:
        conversation = await situation.current()
        wishes, settings = situation.wishes, situation.engine.runtime.settings
        model = wishes.model or (conversation.next_model if conversation else "") or settings.models.main or "what can be found"
        rows = {
            "conversation": f"{conversation.id}  {conversation.title}" if conversation else "not begun yet",
            **({"came from": conversation.came_from} if conversation and conversation.came_from else {}),
            "directory": conversation.directory if conversation else situation.directory,
            "agent": wishes.agent or (conversation.agent if conversation else "default"),
            "model": model,
            "mode": wishes.mode or settings.permissions.mode,
            "effort": wishes.effort or "the model's own",
            **(_figures(conversation) if conversation else {}),
            "home": str(settings.home),
        }
        return [Say("\n".join(f"{name:14}{value}" for name, value in rows.items()))]


def _figures(conversation: Conversation) -> dict[str, str]:
    usage = conversation.usage
    context = conversation.context_usage
    return {
        "messages": str(conversation.message_count),
        "context": "unknown" if context is None else f"{context:.0%} used",
        "tokens": f"{usage.input or 0:,} in, {usage.output or 0:,} out",
        "cost": dollars(conversation),
    }


def dollars(conversation: Conversation) -> str:
    """What it cost; unknown is not nothing."""
    unpriced = f"{conversation.unpriced_runs} without a known price" if conversation.unpriced_runs else ""
    cost = "" if conversation.cost is None else f"${conversation.cost / _NANO:.4f}"
    return " + ".join(part for part in (cost, unpriced) if part) or "unknown"
