"""`/copy`."""

from __future__ import annotations

from collections.abc import Sequence

from moot.commands.command import Choice, Copy, Reply, Situation, begun
from moot.errors import UsageError
from moot.types.part import text_of

__all__ = ["CopyAnswer"]


class CopyAnswer:
    help = "put the last answer, or its last piece of code, into the clipboard"
    argument = "[code]"

    async def choices(self, situation: Situation) -> Sequence[Choice]:
        return [Choice("code", about="the last piece of code of the answer")]

    async def run(self, situation: Situation, argument: str) -> Sequence[Reply]:
        if argument not in ("", "code"):
            raise UsageError(f"there is nothing to copy that is called {argument!r}", fix="/copy, or /copy code")
        conversation = await begun(situation)
        branch = await situation.engine.store.conversations.branch(conversation.id)
        text = next((said for one in reversed(branch) if one.role == "assistant" and (said := text_of(one.parts).strip())), "")
        if argument == "code":
            text = _last_code(text)
        if not text:
            raise UsageError("there is nothing to copy yet", fix="/copy when an answer is there")
        return [Copy(text)]


def _last_code(text: str) -> str:
    """What stands in the last fenced block; empty when there is none."""
    found: list[str] = []
    inside: list[str] | None = None
    fence = ""
    for line in text.split("\n"):
        mark = line.strip()
        if inside is None and mark.startswith(("```", "~~~")):
            inside, fence = [], mark[:3]
        elif inside is not None and mark.startswith(fence) and not mark.strip(fence[0]):
            found, inside = inside, None
        elif inside is not None:
            inside.append(line)
    return "\n".join(found)
