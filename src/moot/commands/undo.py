"""Slash commands that undo and redo prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from moot.commands.command import BaseCommand, Choice, Choose, CommandContext, Compose, Notice, OpenConversation, Reply
from moot.commands.messages import node_numbered, own_prompts
from moot.engine.undo import PARTS, Undo, UndoPart, UndoPlan
from moot.errors import UsageError

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
