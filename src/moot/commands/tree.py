"""`/tree`."""

from __future__ import annotations

from collections.abc import Sequence

from moot.commands.command import Choice, Choose, Go, Reply, Say, Situation, begun
from moot.errors import NotFound
from moot.types.tree import Node

__all__ = ["Tree", "numbered"]


class Tree:
    help = "the messages with all branches; choose one to go on from its branch"
    argument = "[NUMBER]"

    async def choices(self, situation: Situation) -> Sequence[Choice]:
        if situation.conversation is None:
            return ()
        nodes = [node for node in await situation.engine.store.tree.nodes(situation.conversation) if not node.deleted]
        depths: dict[str, int] = {}
        children: dict[str | None, int] = {}
        for node in nodes:
            children[node.parent] = children.get(node.parent, 0) + 1
            # a step in for each branching, not for each message: a long conversation is a straight line
            depths[node.id] = depths.get(node.parent or "", 0) + (1 if children[node.parent] > 1 else 0)
        return [Choice(str(node.no), f"{'  ' * depths[node.id]}{_words(node)}", "shown" if node.shown else "") for node in nodes]

    async def run(self, situation: Situation, argument: str) -> Sequence[Reply]:
        conversation = await begun(situation)
        if not argument:
            return [Choose("Messages", await self.choices(situation))]
        node = numbered(await situation.engine.store.tree.nodes(conversation.id), argument)
        await situation.engine.store.tree.switch(conversation.id, node.id)
        return [Say(f"the branch of message {node.no}", "dim"), Go(conversation.id)]


def numbered(nodes: Sequence[Node], number: str) -> Node:
    """The message of that number. Raises NotFound."""
    found = next((node for node in nodes if str(node.no) == number and not node.deleted), None)
    if found is None:
        raise NotFound(f"no message number {number!r}", fix="/tree")
    return found


def _words(node: Node) -> str:
    return f"{node.no} {node.role}: {node.line}"
