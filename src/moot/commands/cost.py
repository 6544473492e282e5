"""`/cost`."""

from __future__ import annotations

from collections.abc import Sequence

from moot.commands.command import Choice, Reply, Say, Situation
from moot.commands.status import dollars

__all__ = ["Cost"]


class Cost:
    help = "tokens and money of this conversation"
    argument = ""

    async def choices(self, situation: Situation) -> Sequence[Choice]:
        return ()

    async def run(self, situation: Situation, argument: str) -> Sequence[Reply]:
        conversation = await situation.current()
        if conversation is None:
            return [Say("nothing was asked yet", "dim")]
        usage = conversation.usage
        cached = f" ({usage.cache_read:,} from a cache)" if usage.cache_read else ""
        tokens = f"{usage.input or 0:,} tokens in{cached}, {usage.output or 0:,} out"
        return [Say(f"{dollars(conversation)} · {tokens}")]
