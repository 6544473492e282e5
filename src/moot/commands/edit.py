"""`/edit`."""

from __future__ import annotations

from collections.abc import Sequence

from moot.commands.command import Choice, Choose, Compose, Reply, Situation, begun
from moot.commands.tree import numbered
from moot.errors import UsageError
from moot.types.part import text_of

__all__ = ["Edit"]


class Edit:
    help = "say something you said in another way; what followed it stays on its own branch"
    argument = "[NUMBER|last]"

    async def choices(self, situation: Situation) -> Sequence[Choice]:
        if situation.conversation is None:
            return ()
        nodes = await situation.engine.store.tree.nodes(situation.conversation)
        said = [node for node in reversed(nodes) if node.shown and not node.deleted and node.role == "user"]
        return [Choice(str(node.no), f"{node.no} {node.line}") for node in said]

    async def run(self, situation: Situation, argument: str) -> Sequence[Reply]:
        conversation = await begun(situation)
        choices = await self.choices(situation)
        if not choices:
            raise UsageError("there is nothing of yours to edit here")
        if not argument:
            return [Choose("Edit", choices)]
        nodes = await situation.engine.store.tree.nodes(conversation.id)
        node = numbered(nodes, choices[0].value if argument == "last" else argument)
        if node.role != "user":
            raise UsageError(f"message {node.no} is the {node.role}'s; you can edit what you said", fix="/edit")
        message = await situation.engine.store.conversations.message(node.id)
        return [Compose(text_of(message.parts), edits=message.id)]
