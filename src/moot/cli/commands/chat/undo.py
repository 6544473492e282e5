"""The commands `moot chat undo` and `moot chat redo`."""

from __future__ import annotations

from typing import Annotated

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.output import Output
from moot.cli.context.engine import opened_at
from moot.cli.options import Out, Which
from moot.cli.terminal.prompts.plain import confirm
from moot.engine.undo import Undo, UndoPart, UndoPlan
from moot.errors import NeedsApproval, UsageError
from moot.types.canonical import JsonObject

Talk = Annotated[bool, Parameter(help="Only the messages.")]
Files = Annotated[bool, Parameter(help="Only the files that the prompt changed.")]
Both = Annotated[bool, Parameter(help="Messages and files.")]
Overwrite = Annotated[bool, Parameter(help="Also replace files that were changed since. Without it, they are kept and named.")]
DryRun = Annotated[bool, Parameter(help="Show what would happen, without changing anything.")]
Yes = Annotated[bool, Parameter(name=("--yes", "-y"), help="Don't prompt for confirmation.")]


async def undo(
    conversation: Which,
    /,
    *,
    talk: Talk = False,
    files: Files = False,
    both: Both = False,
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Undo the last prompt of a conversation: its messages and the files that it changed. Repeat it to undo the prompt before."""
    part = _part(talk, files, both) or "both"
    async with opened_at(conversation, output) as (engine, found):
        work = Undo(engine.runtime, found)
        plan = await work.undo(part, overwrite=overwrite, dry_run=True)
        asked = overwrite
        if not dry_run:
            if not yes and not await _confirmed(plan, output):
                return _refused(output)
            if any(kept.forced for kept in plan.kept) and not yes:
                asked = await confirm("Overwrite the files that were changed since, too?", output)
            plan = await work.undo(part, overwrite=asked)
    _print(plan, found.id, json, output)
    return 0


async def redo(
    conversation: Which,
    /,
    *,
    talk: Talk = False,
    files: Files = False,
    both: Both = False,
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Redo the last undo. This is possible until the next prompt is sent."""
    part = _part(talk, files, both)
    async with opened_at(conversation, output) as (engine, found):
        work = Undo(engine.runtime, found)
        plan = await work.redo(part, overwrite=overwrite, dry_run=True)
        if not dry_run:
            if not yes and not await _confirmed(plan, output):
                return _refused(output)
            plan = await work.redo(part, overwrite=overwrite)
    _print(plan, found.id, json, output)
    return 0


def _part(talk: bool, files: bool, both: bool) -> UndoPart | None:
    if talk + files + both > 1:
        raise UsageError("--talk, --files and --both can't be combined.", fix="Use --both for messages and files.")
    chosen: dict[UndoPart, bool] = {"talk": talk, "files": files, "both": both}
    return next((part for part, is_chosen in chosen.items() if is_chosen), None)


async def _confirmed(plan: UndoPlan, output: Output) -> bool:
    """Show what will happen and ask. Raise NeedsApproval if there is no one to ask."""
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
