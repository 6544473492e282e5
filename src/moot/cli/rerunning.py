"""`moot replay --rerun`: the conversation run again, against its own recording or with another model."""

from __future__ import annotations

from dataclasses import replace

from moot.cli.comparing import print_comparison
from moot.cli.following import Follower
from moot.cli.messages import print_messages
from moot.cli.options import ShowFlags
from moot.cli.output import Output
from moot.cli.run import make_show
from moot.convert.comparing import compared
from moot.engine import Engine
from moot.errors import UsageError
from moot.runtime.rerun import Rerun, rerun
from moot.runtime.sides import side_of
from moot.types.canonical import Json
from moot.types.conversation import Conversation
from moot.types.ids import new_id
from moot.types.run import TERMINAL, Prompt

__all__ = ["run_again", "run_with"]

_OF_THEN = frozenset({"recorded", "unattended"})
"""Settings that belong to the run as it was."""


async def run_again(engine: Engine, conversation: Conversation, output: Output, *, json: bool) -> int:
    """Runs every run of the shown branch again offline; 1 when anything differs."""
    found: list[Rerun] = []
    for message in await engine.store.conversations.branch(conversation.id):
        if message.run is None:
            continue
        run = await engine.store.records.run(message.run)
        if run.status in TERMINAL:
            found.append(await rerun(engine.runtime, engine.store, conversation, run))
            if not json:
                _tell(found[-1], len(found), output)
    differs = any(one.differences for one in found)
    if json:
        data = list[Json]([one.to_json() for one in found])
        output.json({"ok": not differs, "conversation": conversation.id, "data": data})
    elif not found:
        output.say("moot: no run of it has ended, so there is nothing to run again", "yellow")
    return 1 if differs else 0


def _tell(one: Rerun, number: int, output: Output) -> None:
    name = f"run {number} · {one.run.model or one.run.agent}"
    if not one.ran:
        output.line(f"{name}: not run again: {one.why}")
        return
    took = f"{one.requests} request{'' if one.requests == 1 else 's'}, {one.calls} tool call{'' if one.calls == 1 else 's'}"
    verdict = "the same" if not one.differences else f"{len(one.differences)} difference{'' if len(one.differences) == 1 else 's'}"
    output.line(f"{name} · {took}: {verdict}")
    for words in one.differences:
        output.line(f"  {words}")


async def run_with(engine: Engine, source: Conversation, model: str, output: Output, *, json: bool) -> int:
    """Says every prompt of the shown branch again to another model, in a conversation of its own, and puts both side by side."""
    branch = await engine.store.conversations.branch(source.id)
    prompts = [message for message in branch if message.role == "user"]
    if not prompts:
        raise UsageError(f"{source.title or source.id!r} has no prompts to say again", fix="moot chat show ID")
    choice = await engine.providers.choice(model)
    name = str(choice.model.id)
    made = await engine.store.conversations.create(
        replace(
            Conversation(new_id()),
            title=f"{source.title or 'untitled'} ({name})",
            title_source="model",
            agent=source.agent if source.agent_type == "moot" else "default",
            model=name,
            project=source.project,
            directory=source.directory,
            allowed_uris=source.allowed_uris,
            forked_from=source.id,
            owner=source.owner,
        )
    )
    for message in prompts:
        code = await _say(engine, made, message.parts, await _settings(engine, source, message.id), name, output, json=json)
        if code:
            output.say(f"moot: stopped there; moot chat compare {source.id[:13]} {made.id[:13]}", "yellow")
            return code
    made = await engine.store.conversations.get(made.id)
    comparison = compared(await side_of(engine.store, source), await side_of(engine.store, made))
    if json:
        output.json(comparison)
    else:
        print_comparison(comparison, output)
        output.say(f"moot: again with moot chat compare {source.id[:13]} {made.id[:13]}", "dim")
    return 0


async def _settings(engine: Engine, source: Conversation, message: str) -> dict[str, Json]:
    """What the prompt was given with."""
    run = await engine.store.records.last_answer(message)
    return {name: value for name, value in run.settings.items() if name not in _OF_THEN} if run is not None else {}


async def _say(
    engine: Engine,
    made: Conversation,
    parts: tuple[dict[str, Json], ...],
    settings: dict[str, Json],
    model: str,
    output: Output,
    *,
    json: bool,
) -> int:
    if not output.attended:
        settings = {**settings, "unattended": "deny"}
    submitted = await engine.runs.submit(Prompt(parts, conversation=made.id, directory=made.directory, model=model, settings=settings))
    if json:
        run = await engine.runs.wait(submitted.run.id)
        return 0 if run.status == "finished" else 1
    last = await engine.store.conversations.branch(made.id, limit=2)
    print_messages([one for one in last if one.role == "user"], output)
    return await Follower(engine, output, make_show(ShowFlags(), output)).follow(submitted.run, submitted.conversation, submitted.seq)
