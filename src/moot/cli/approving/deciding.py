"""`decide`: one approval or set of questions, put to the person at the terminal."""

from __future__ import annotations

from moot.cli.approving import typed
from moot.cli.approving.situations import Decided, Situation
from moot.cli.output import Output
from moot.types.approval import Approval

__all__ = ["decide"]


async def decide(approval: Approval, situation: Situation, output: Output, *, draft: str = "") -> Decided:
    """What the person says; nothing of it is stored yet. Ends by itself when it expires or somebody else has answered.

    `draft` is what stands in a composer, which must not be running: what is typed here and is no answer comes back behind it.
    """
    return await typed.decide(approval, situation, output, draft=draft)
