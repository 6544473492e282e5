"""Slash commands for messages: edit a message, show the tree of branches, and copy an answer."""

from __future__ import annotations

from collections.abc import Sequence

from moot.commands.command import BaseCommand, Choice, Choose, CommandContext, Compose, Copy, Notice, OpenConversation, Reply
from moot.convert.files.attachments import typed_text
from moot.errors import NotFound, UsageError
from moot.types.message import text_of
from moot.types.tree import Node


class EditCommand(BaseCommand):
    help = "Edit one of your messages; the original stays on its own branch"
    argument = "[NUMBER|last]"

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        return await own_prompts(context)

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        conversation = await context.require_current()
        choices = await own_prompts(context)
        if not choices:
            raise UsageError("You have no messages to edit in this conversation.")
        if not argument:
            return [Choose("Edit", choices)]
        nodes = await context.store.tree.nodes(conversation.id)
        node = node_numbered(nodes, choices[0].value if argument == "last" else argument)
        if node.role != "user":
            raise UsageError(f"Message {node.no} was not written by you.", fix="/edit lists your messages.")
        message = await context.store.conversations.message(node.id)
        return [Compose(typed_text(message.parts), edits=message.id)]


class TreeCommand(BaseCommand):
    help = "Show all messages and branches; choose one to switch to its branch"
    argument = "[NUMBER]"

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        if context.conversation is None:
            return ()
        nodes = [node for node in await context.store.tree.nodes(context.conversation) if not node.deleted]
        depths: dict[str, int] = {}
        children: dict[str | None, int] = {}
        for node in nodes:
            children[node.parent] = children.get(node.parent, 0) + 1
            # indent once per branch, not per message: a long conversation is a straight line
            depths[node.id] = depths.get(node.parent or "", 0) + (1 if children[node.parent] > 1 else 0)
        return [
            Choice(str(node.no), f"{'  ' * depths[node.id]}{node.no} {node.role}: {node.line}", "shown" if node.shown else "")
            for node in nodes
        ]

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        conversation = await context.require_current()
        if not argument:
            return [Choose("Messages", await self.choices(context))]
        node = node_numbered(await context.store.tree.nodes(conversation.id), argument)
        await context.store.tree.switch(conversation.id, node.id)
        return [Notice(f"Switched to the branch of message {node.no}.", "dim"), OpenConversation(conversation.id)]


async def own_prompts(context: CommandContext) -> Sequence[Choice]:
    """Return the user's prompts on the shown branch, newest first. The value of a choice is the number of the message."""
    if context.conversation is None:
        return ()
    nodes = await context.store.tree.nodes(context.conversation)
    own = [node for node in reversed(nodes) if node.shown and not node.deleted and node.role == "user"]
    return [Choice(str(node.no), f"{node.no} {node.line}") for node in own]


def node_numbered(nodes: Sequence[Node], number: str) -> Node:
    """Return the message with this number. Raise NotFound if there is none, or if it is deleted."""
    found = next((node for node in nodes if str(node.no) == number and not node.deleted), None)
    if found is None:
        raise NotFound(f"Message {number!r} not found.", fix="/tree lists all messages.")
    return found


class CopyCommand(BaseCommand):
    help = "Copy the last answer, or its last code block, to the clipboard"
    argument = "[code]"

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        return [Choice("code", about="the last code block of the answer")]

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        if argument not in ("", "code"):
            raise UsageError(f"Cannot copy {argument!r}.", fix="Use /copy or /copy code.")
        conversation = await context.require_current()
        branch = await context.store.conversations.branch(conversation.id)
        answers = (text_of(message.parts).strip() for message in reversed(branch) if message.role == "assistant")
        text = next(filter(None, answers), "")
        if argument == "code":
            text = _last_code_block(text)
        if not text:
            raise UsageError("There is nothing to copy yet.", fix="Use /copy after an answer.")
        return [Copy(text)]


def _last_code_block(text: str) -> str:
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
