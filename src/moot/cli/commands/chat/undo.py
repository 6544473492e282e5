"""The commands `moot chat undo` and `moot chat redo`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.output import Output
from moot.cli.context.engine import opened_at
from moot.cli.context.output import Out
from moot.cli.options import Which
from moot.cli.terminal.prompts.plain import confirm
from moot.engine.undo import Undo, UndoPart, UndoPlan
from moot.errors import NeedsApproval, UsageError
from moot.types.canonical import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoFlags:
    """Options of both commands."""

    talk: Annotated[bool, Parameter(help="Undo or redo only the messages.")] = False
    files: Annotated[bool, Parameter(help="Undo or redo only the file changes.")] = False
    both: Annotated[bool, Parameter(help="Undo or redo both messages and file changes.")] = False
    overwrite: Annotated[bool, Parameter(help="Also overwrite files that were changed later. By default, they are kept and listed.")] = (
        False
    )
    dry_run: Annotated[bool, Parameter(help="Show what would happen, without changing anything.")] = False
    yes: Annotated[bool, Parameter(name=("--yes", "-y"), help="Don't prompt for confirmation.")] = False

    def part(self) -> UndoPart | None:
        """Return the part chosen by the options, or None if there is none. Raise UsageError if several parts are chosen."""
        chosen: dict[UndoPart, bool] = {"talk": self.talk, "files": self.files, "both": self.both}
        if sum(chosen.values()) > 1:
            raise UsageError("--talk, --files and --both can't be combined.", fix="Use --both for messages and files.")
        return next((part for part, is_chosen in chosen.items() if is_chosen), None)


NO_FLAGS = UndoFlags()


async def undo(conversation: Which, /, *, flags: UndoFlags = NO_FLAGS, json: AsJson = False, output: Out) -> int:
    """Undo the last prompt of a conversation: its messages and the files that it changed. Run it again to undo the previous prompt."""
    part = flags.part() or "both"
    async with opened_at(conversation, output) as (engine, found):
        work = Undo(engine.runtime, found)
        plan = await work.undo(part, overwrite=flags.overwrite, dry_run=True)
        overwrite = flags.overwrite
        if not flags.dry_run:
            if not flags.yes and not await _confirmed(plan, output):
                return _refused(output)
            if any(kept.forced for kept in plan.kept) and not flags.yes:
                overwrite = await confirm("Also overwrite the files that were changed later?", output)
            plan = await work.undo(part, overwrite=overwrite)
    _print(plan, found.id, json, output)
    return 0


async def redo(conversation: Which, /, *, flags: UndoFlags = NO_FLAGS, json: AsJson = False, output: Out) -> int:
    """Redo the last undo. This is possible until the next prompt is sent."""
    part = flags.part()
    async with opened_at(conversation, output) as (engine, found):
        work = Undo(engine.runtime, found)
        plan = await work.redo(part, overwrite=flags.overwrite, dry_run=True)
        if not flags.dry_run:
            if not flags.yes and not await _confirmed(plan, output):
                return _refused(output)
            plan = await work.redo(part, overwrite=flags.overwrite)
    _print(plan, found.id, json, output)
    return 0


async def _confirmed(plan: UndoPlan, output: Output) -> bool:
    """Show what will happen and ask the user to confirm. Raise NeedsApproval if the user can't be asked."""
    question = f"{plan.action.capitalize()} “{plan.title}”: {plan.counts()}?"
    if not output.attended:
        raise NeedsApproval(f"{question} This needs confirmation.", fix="Use --yes.")
    for line in plan.notes():
        output.say(line, "yellow")
    return await confirm(question, output)


def _refused(output: Output) -> int:
    output.say("moot: nothing was changed", "dim")
    return 1


def _print(plan: UndoPlan, conversation: str, json: bool, output: Output) -> None:
    if json:
        document: JsonObject = {"ok": True, "conversation": conversation, **plan.to_json()}
        output.json(document)
        return
    for path, change in plan.files:
        output.line(f"{change} {path}")
    for line in plan.notes():
        output.say(line, "yellow")
    verb = {"undo": "undid", "redo": "redid"}[plan.action] if plan.done else f"would {plan.action}"
    back = f"; redo it with: moot chat redo {conversation[:13]}" if plan.done and plan.action == "undo" else ""
    output.say(f"moot: {verb} “{plan.title}”: {plan.counts()}{back}")
