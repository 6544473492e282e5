"""`moot replay --rerun`: run a conversation again, against its recording or with another model."""

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

_ORIGINAL_SETTINGS = frozenset({"recorded", "unattended"})
"""Settings that only apply to the original run."""


async def run_again(engine: Engine, conversation: Conversation, output: Output, *, json: bool) -> int:
    """Run every run of the shown branch again offline. Return 1 if anything differs."""
    found: list[Rerun] = []
    for message in await engine.store.conversations.branch(conversation.id):
        if message.run is None:
            continue
        run = await engine.store.records.run(message.run)
        if run.status in TERMINAL:
            found.append(await rerun(engine.runtime, engine.store, conversation, run))
            if not json:
                _print_result(found[-1], len(found), output)
    differs = any(one.differences for one in found)
    if json:
        data = list[Json]([one.to_json() for one in found])
        output.json({"ok": not differs, "conversation": conversation.id, "data": data})
    elif not found:
        output.say("moot: the conversation has no finished run", "yellow")
    return 1 if differs else 0


def _print_result(one: Rerun, number: int, output: Output) -> None:
    name = f"run {number} · {one.run.model or one.run.agent}"
    if not one.ran:
        output.line(f"{name}: skipped: {one.why}")
        return
    counts = f"{one.requests} request{'' if one.requests == 1 else 's'}, {one.calls} tool call{'' if one.calls == 1 else 's'}"
    verdict = "identical" if not one.differences else f"{len(one.differences)} difference{'' if len(one.differences) == 1 else 's'}"
    output.line(f"{name} · {counts}: {verdict}")
    for words in one.differences:
        output.line(f"  {words}")


async def run_with(engine: Engine, source: Conversation, model: str, output: Output, *, json: bool) -> int:
    """Send the prompts of the shown branch to another model in a new conversation, and compare the two."""
    branch = await engine.store.conversations.branch(source.id)
    prompts = [message for message in branch if message.role == "user"]
    if not prompts:
        raise UsageError(f"{source.title or source.id!r} has no prompts.", fix="moot chat show ID")
    choice = await engine.providers.choice(model)
    name = str(choice.model.id)
    created = await engine.store.conversations.create(
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
        code = await _send(engine, created, message.parts, await _settings(engine, source, message.id), name, output, json=json)
        if code:
            output.say(f"moot: stopped; compare the answers so far with: moot chat compare {source.id[:13]} {created.id[:13]}", "yellow")
            return code
    created = await engine.store.conversations.get(created.id)
    comparison = compared(await side_of(engine.store, source), await side_of(engine.store, created))
    if json:
        output.json(comparison)
    else:
        print_comparison(comparison, output)
        output.say(f"moot: show this again with: moot chat compare {source.id[:13]} {created.id[:13]}", "dim")
    return 0


async def _settings(engine: Engine, source: Conversation, message: str) -> dict[str, Json]:
    """Return the settings of the run that answered the message."""
    run = await engine.store.records.last_answer(message)
    return {name: value for name, value in run.settings.items() if name not in _ORIGINAL_SETTINGS} if run is not None else {}


async def _send(
    engine: Engine,
    created: Conversation,
    parts: tuple[dict[str, Json], ...],
    settings: dict[str, Json],
    model: str,
    output: Output,
    *,
    json: bool,
) -> int:
    if not output.attended:
        settings = {**settings, "unattended": "deny"}
    submitted = await engine.runs.submit(
        Prompt(parts, conversation=created.id, directory=created.directory, model=model, settings=settings)
    )
    if json:
        run = await engine.runs.wait(submitted.run.id)
        return 0 if run.status == "finished" else 1
    last = await engine.store.conversations.branch(created.id, limit=2)
    print_messages([one for one in last if one.role == "user"], output)
    return await Follower(engine, output, make_show(ShowFlags(), output)).follow(submitted.run, submitted.conversation, submitted.seq)
