"""Slash commands for messages: edit a message, show the tree of branches, copy an answer, and undo and redo prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from moot.commands.command import BaseCommand, Choice, Choose, CommandContext, Compose, Copy, Notice, OpenConversation, Reply
from moot.convert.files.attachments import typed_text
from moot.engine.undo import PARTS, Undo, UndoPart, UndoPlan
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
            raise UsageError(f"You did not write message {node.no}.", fix="Use /edit to list your messages.")
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
    """Return the user's prompts on the current branch, newest first. The value of a choice is the number of the message."""
    if context.conversation is None:
        return ()
    nodes = await context.store.tree.nodes(context.conversation)
    own = [node for node in reversed(nodes) if node.shown and not node.deleted and node.role == "user"]
    return [Choice(str(node.no), f"{node.no} {node.line}") for node in own]


def node_numbered(nodes: Sequence[Node], number: str) -> Node:
    """Return the message with this number. Raise NotFound if there is none, or if it is deleted."""
    found = next((node for node in nodes if str(node.no) == number and not node.deleted), None)
    if found is None:
        raise NotFound(f"Message {number!r} not found.", fix="Use /tree to list all messages.")
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


_OVERWRITE = "overwrite"
_LABELS: dict[UndoPart, str] = {"both": "Messages and files", "talk": "Only the messages", "files": "Only the files"}

_NAMES: dict[str, UndoPart] = {part: part for part in PARTS}


class UndoCommand:
    help = "Undo the last prompt: its messages, the files that it changed, or both"
    argument = "[both|talk|files] [overwrite]"

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        return [choice for choice, _ in await _offers(context, "undo")]

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        return await _run(context, "undo", argument)


class RedoCommand:
    help = "Redo what was undone, until the next prompt is sent"
    argument = "[both|talk|files] [overwrite]"

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        return [choice for choice, _ in await _offers(context, "redo")]

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        return await _run(context, "redo", argument)


class RewindCommand(BaseCommand):
    help = "Edit one of your earlier prompts again, and optionally undo the changes to files since then"
    argument = "[NUMBER] [both|talk|files] [overwrite]"

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        return await own_prompts(context)

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        conversation = await context.require_current()
        number, _, rest = argument.partition(" ")
        if not number:
            choices = await self.choices(context)
            if not choices:
                raise UsageError("You have no messages in this conversation.")
            return [Choose("Rewind to", choices)]
        node = node_numbered(await context.store.tree.nodes(conversation.id), number)
        return await _run(context, "undo", rest, back_to=node.id, prefix=f"{number} ")


async def _run(
    context: CommandContext, action: Literal["undo", "redo"], argument: str, *, back_to: str = "", prefix: str = ""
) -> Sequence[Reply]:
    """Undo or redo. `back_to` is an earlier prompt to undo, and `prefix` comes before the argument when the user chooses one."""
    conversation = await context.require_current()
    if action == "undo" and not argument:
        offers = await _offers(context, action, back_to)
        if len(offers) > 1:
            choices = [replace(choice, value=f"{prefix}{choice.value}") for choice, _ in offers]
            return [Choose(f"Undo “{offers[0][1].title}”", choices)]
        argument = offers[0][0].value if offers else "both"
    part, overwrite = _parsed(argument)
    undo = Undo(context.engine.runtime, conversation)
    if action == "redo":
        plan = await undo.redo(part, overwrite=overwrite)
    else:
        plan = await undo.undo(part or "both", back_to=back_to, overwrite=overwrite)
    done = "Redone" if action == "redo" else "Back to" if back_to else "Undone"
    replies: list[Reply] = [Notice("\n".join([f"{done} “{plan.title}”: {plan.counts()}.", *plan.notes()]), "dim")]
    if plan.part != "files":
        replies.append(OpenConversation(conversation.id))
        replies += [Compose(plan.text)] if action == "undo" else []
    return replies


async def _offers(context: CommandContext, action: Literal["undo", "redo"], back_to: str = "") -> list[tuple[Choice, UndoPlan]]:
    """Return the possible arguments, each with what it would do."""
    if (conversation := await context.current()) is None:
        return []
    found: list[tuple[Choice, UndoPlan]] = []
    for part in PARTS:
        undo = Undo(context.engine.runtime, conversation)
        for overwrite in (False, True):
            try:
                work = undo.redo if action == "redo" else partial(undo.undo, back_to=back_to)
                plan = await work(part, overwrite=overwrite, dry_run=True)
            except UsageError:  # nothing of this kind to undo
                break
            if part == "talk" or plan.files or any(kept.forced for kept in plan.kept):
                value, label = (
                    (f"{part} {_OVERWRITE}", f"{_LABELS[part]}, overwriting later changes") if overwrite else (part, _LABELS[part])
                )
                found.append((Choice(value, label, plan.counts()), plan))
            if not any(kept.forced for kept in plan.kept):
                break
    return found


def _parsed(argument: str) -> tuple[UndoPart | None, bool]:
    """Return the part to undo, and whether to overwrite files that have been changed since then."""
    words = argument.split()
    overwrite = _OVERWRITE in words
    rest = [word for word in words if word != _OVERWRITE]
    part = _NAMES.get(" ".join(rest))
    if rest and part is None:
        raise UsageError(
            f"Cannot undo {' '.join(rest)!r}.", fix="Choose one of: both, talk, files. Add 'overwrite' to replace later changes."
        )
    return part, overwrite
