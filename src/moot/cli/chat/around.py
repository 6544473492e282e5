"""`moot chat show ID --at MESSAGE`: a message and those around it, on any branch."""

from __future__ import annotations

from collections.abc import Sequence

from moot.cli.chat.facts import live_statuses
from moot.cli.edited import with_edits
from moot.cli.messages import print_messages, say_head
from moot.cli.opening import opened_at
from moot.cli.output import Output
from moot.cli.references import find_message
from moot.convert.given import conversation_json, message_json
from moot.types.canonical import Json
from moot.types.message import Message
from moot.types.tree import Node

__all__ = ["AROUND", "show_around"]

AROUND = 7
"""Default number of messages, with the requested one in the middle."""


async def show_around(conversation: str, at: str, limit: int, output: Output, *, json: bool) -> None:
    """Print a message and those around it. Raise NotFound if it does not exist."""
    async with opened_at(conversation, output) as (engine, found):
        nodes = await engine.store.tree.nodes(found.id)
        node = find_message(nodes, at)
        branch = await engine.store.conversations.branch(found.id, head=None if node.shown else _tip(nodes, node).id)
        branch = await with_edits(engine.store, branch)
        live = await live_statuses(engine.store)
    place = next((number for number, message in enumerate(branch) if message.id == node.id), len(branch) - 1)
    start = max(0, min(place - limit // 2, len(branch) - limit))
    if json:
        data = list[Json]([message_json(message) for message in branch[start : start + limit]])
        output.json({"data": data, "at": node.id, "shown": node.shown, "conversation": conversation_json(found, live)})
        return
    say_head(found, output)
    if not node.shown:
        output.say(f"moot: this is on another branch; switch to it with: moot chat switch {found.id} {node.no}", "dim")
    _print(branch, range(start, min(start + limit, len(branch))), place, output)


def _print(branch: Sequence[Message], shown: range, place: int, output: Output) -> None:
    if shown.start:
        output.say(f"… {shown.start} older", "dim")
    print_messages(branch[shown.start : place], output, before=branch[: shown.start])
    output.say("▶ here", "green")
    print_messages(branch[place : place + 1], output, before=branch[:place])
    print_messages(branch[place + 1 : shown.stop], output, before=branch[: place + 1])
    if shown.stop < len(branch):
        output.say(f"… {len(branch) - shown.stop} newer", "dim")


def _tip(nodes: Sequence[Node], node: Node) -> Node:
    """Return the last message of the newest branch through the node."""
    newest = {child.parent: child for child in nodes if child.parent is not None and not child.deleted}
    while node.id in newest:
        node = newest[node.id]
    return node
