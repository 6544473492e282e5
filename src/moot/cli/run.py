"""`moot run`, and what every command that runs a prompt shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from moot.cli.configured import configured, here
from moot.cli.following import Follower
from moot.cli.options import Files, Out, RunFlags, ShowFlags, run_settings
from moot.cli.output import Output
from moot.cli.parameters import Parameter
from moot.cli.prompts import gather, read_schema
from moot.cli.references import find_conversation
from moot.cli.showing import Show, ShowChunks, ShowEvents, ShowJson, ShowText
from moot.cli.weights import provide_weights
from moot.config.settings import Settings
from moot.convert.contract import check_answer
from moot.engine import Engine, open_engine
from moot.types.canonical import JsonObject
from moot.types.part import Part
from moot.types.run import Prompt

_NO_FLAGS = RunFlags()
_NO_SHOW = ShowFlags()


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt and how it is to be run and shown."""

    parts: tuple[Part, ...]
    flags: RunFlags
    shown: ShowFlags
    conversation: str | None = None
    """As the person named it; None = a new one."""


async def run(
    prompt: Annotated[str | None, Parameter(help="What to do; stdin is joined below it.")] = None,
    /,
    *,
    file: Files | None = None,
    continue_: Annotated[
        str | None,
        Parameter(
            name=("--continue", "-c"), help="Go on with a conversation: its id or list index, --continue=TITLE; alone: the latest one here."
        ),
    ] = None,
    flags: RunFlags = _NO_FLAGS,
    shown: ShowFlags = _NO_SHOW,
    output: Out,
) -> int:
    """One prompt to its answer."""
    return await perform(Request(gather(prompt, file or [], output), flags, shown, continue_), output)


async def perform(request: Request, output: Output) -> int:
    """Runs a prompt in the foreground and shows it; the exit code."""
    schema = read_schema(request.flags.schema) if request.flags.schema is not None else None
    show = make_show(request.shown, output)
    settings = run_settings(request.flags, schema, attended=output.attended)
    loaded = configured(output)
    for note in loaded.notes:
        output.say(f"moot: {note}", "dim")
    async with open_engine(loaded.settings) as engine:
        return await _submit(engine, request, settings, show, output)


def make_show(shown: ShowFlags, output: Output) -> Show:
    """The way of showing that was asked for."""
    forms = {"text": ShowText, "json": ShowJson, "jsonl": ShowEvents, "ui": ShowChunks}
    return forms[shown.form()](output)


async def _submit(engine: Engine, request: Request, settings: JsonObject, show: Show, output: Output) -> int:
    directory = str(here())
    flags = request.flags
    existing = None
    if request.conversation is not None:
        existing = await find_conversation(engine.store, request.conversation, directory)
    agent = flags.agent or (existing.agent if existing else "default")
    wanted = flags.model or (existing.model if existing and not flags.agent else "")
    await provide_weights(engine.providers, wanted or agent_model(engine.settings, agent), output, consent=flags.yes_download)
    submitted = await engine.runs.submit(
        Prompt(
            request.parts,
            conversation=existing.id if existing else None,
            directory=directory,
            agent=flags.agent,
            model=flags.model,
            mode=flags.mode,
            settings=settings,
        )
    )
    follower = Follower(engine, output, show)
    code = await follower.follow(submitted.run, submitted.conversation, submitted.seq)
    schema = settings.get("schema")
    if code == 0 and isinstance(schema, dict):
        check_answer(await engine.store.conversations.message(submitted.run.message), schema)
    return code


def agent_model(settings: Settings, agent: str) -> str:
    """The model that an agent asks for; `main` for one that nobody knows, which the engine will say."""
    return settings.agents[agent].model if agent in settings.agents else "main"
