"""The command `moot run`, and the code shared by all commands that run a prompt."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from moot.agents.known import agent_named, fallback_models
from moot.cli.arguments.signatures import LATEST, PREVIOUS, Parameter
from moot.cli.console.lines import write_notes
from moot.cli.console.messages import print_messages, with_edits
from moot.cli.console.output import Output
from moot.cli.console.results import Show, ShowChunks, ShowEvents, ShowJson, ShowText
from moot.cli.context.configuration import configured, configured_loader, here
from moot.cli.context.engine import check_new, deleted_at_end, find_conversation, open_remote, open_watched, purged
from moot.cli.context.output import Out
from moot.cli.context.references import copied, in_folder
from moot.cli.follow import Follower
from moot.cli.models import ensure_model, needs_main_model, provide_weights
from moot.cli.options import NO_FLAGS, NO_SHOW, WORKTREE, Continue, Files, RunFlags, ShowFlags, run_settings
from moot.cli.remote import AnyEngine
from moot.cli.remote.address import remote_url
from moot.engine import Engine
from moot.engine.submissions import copy_of
from moot.errors import Busy, UsageError
from moot.features.prompts.attachments import MAX_TEXT, as_text, attach, read_whole
from moot.features.prompts.references import Place, attach_references
from moot.features.settings import allow_folders, chosen_folders
from moot.guard.json_schema import check_answer
from moot.guard.roots import with_folders
from moot.plugins.registry import attribute
from moot.runtime.approvals.typed_answers import answer_command, open_approval
from moot.types.canonical import JsonObject, empty, loads_object
from moot.types.conversation import Conversation
from moot.types.hooks import is_withheld
from moot.types.message import Part, text_part
from moot.types.run import Prompt, Submitted

if TYPE_CHECKING:
    from moot.commands import Send

PATIENCE = 3.0
"""Number of seconds to wait for input on stdin before a hint is printed."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A prompt from the command line."""

    parts: tuple[Part, ...] = ()
    """The files, followed by the text from the arguments."""
    piped: str = ""
    """The text from standard input."""

    def __bool__(self) -> bool:
        return bool(self.parts or self.piped)


def gather(prompt: str | None, files: Sequence[Path], output: Output, *, needed: bool = True) -> Typed:
    """Return the prompt: its files, its text, and the content of stdin.

    Raise UsageError if a file is missing or too large, or if `needed` is True and there is no prompt.
    """
    parts: list[Part] = []
    for path in files:
        attached = attach(path)
        parts.append(attached.part)
        if attached.note:
            output.say(f"moot: {attached.note}", "yellow")
    piped = _stdin(output, alone=prompt is None)
    if not f"{prompt or ''}{piped}".strip():
        piped = ""
    elif prompt:
        parts.append(text_part(prompt))
    if not parts and not piped and needed:
        raise UsageError("No prompt given.", fix='Pass it as an argument, as in moot run "…", or on stdin.')
    return Typed(tuple(parts), piped)


def read_schema(path: Path) -> JsonObject:
    """Read a JSON Schema from a file. Raise UsageError if it is not valid JSON."""
    try:
        return loads_object(read_whole(path, MAX_TEXT))
    except ValueError as error:
        raise UsageError(f"{str(path)!r} is not a JSON Schema: {error}") from error


def _stdin(output: Output, *, alone: bool) -> str:
    if sys.stdin.isatty():
        return ""
    descriptor = sys.stdin.fileno()
    pieces: list[bytes] = []
    size = 0
    if not alone and not select.select([descriptor], [], [], PATIENCE)[0]:
        output.say("moot: reading from stdin; use </dev/null if there is no input", "dim")
    while piece := os.read(descriptor, 1 << 20):
        pieces.append(piece)
        size += len(piece)
        if size > MAX_TEXT:
            raise UsageError(
                f"stdin is larger than {MAX_TEXT >> 20} MiB.", fix="Shorten it, or save it to a file and name that file in the prompt."
            )
    text, note = as_text(b"".join(pieces), "stdin")
    if note:
        output.say(f"moot: {note}", "yellow")
    return text.removesuffix("\n")


_SHOWS: Mapping[str, Callable[[Output], Show]] = {"text": ShowText, "json": ShowJson, "jsonl": ShowEvents, "ui": ShowChunks}
_SCREEN = "moot.cli.transcript.screen:ShowScreen"
"""Import path, loaded only on a terminal."""


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt, and how to run it and display its answer."""

    typed: Typed
    flags: RunFlags
    shown: ShowFlags
    conversation: str | None = None
    """Reference to the conversation, as typed by the user; None for a new conversation."""
    again: bool = False
    """True to repeat the last answer instead of sending a prompt."""
    directory: str = ""
    """Folder for a new conversation; empty for the current folder."""
    show_history: bool = False
    """True to print the conversation before the answer, if the output is a terminal."""
    command: Send | None = None
    """The reply of the slash command that sends the prompt. The agent and model in it apply only to this prompt."""
    chosen: JsonObject = field(default_factory=empty)
    """Settings to store if the conversation is new."""


async def run(
    *prompt: Annotated[str, Parameter(help="Text of the prompt, with or without quotes. Standard input is appended.")],
    file: Files | None = None,
    continue_: Continue | None = None,
    reply: Annotated[
        bool,
        Parameter(help="Continue the most recently used conversation from any directory or, with -c, from this directory."),
    ] = False,
    flags: RunFlags = NO_FLAGS,
    shown: ShowFlags = NO_SHOW,
    output: Out,
) -> int:
    """Run one prompt and print the answer."""
    if reply and continue_ not in (None, LATEST):
        raise UsageError("--reply and -c ID cannot be used together.")
    conversation = PREVIOUS if reply and continue_ is None else continue_
    return await perform(Request(gather(" ".join(prompt) or None, file or [], output), flags, shown, conversation), output)


async def perform(request: Request, output: Output) -> int:
    """Run a prompt in the foreground, show it, and return the exit code."""
    if remote_url():
        return await _perform_on_server(request, output)
    if request.flags.worktree is not None and not request.directory:
        async with attribute(WORKTREE)(request.flags.worktree, request.conversation, output) as folder:
            return await perform(replace(request, directory=folder), output)
    schema = read_schema(request.flags.schema) if request.flags.schema is not None else None
    show = make_show(request.shown, output)
    settings = {**run_settings(request.flags, schema, attended=output.attended), **(request.command.settings if request.command else {})}
    loader = configured_loader(output)
    write_notes(output, loader.current.notes)
    flags = request.flags
    # scripts and runs with --yes-download are never asked to choose a model
    asks = flags.yes or (request.shown.form() == "text" and not flags.yes_download)
    if asks and request.conversation is None and needs_main_model(loader.current.settings, flags.agent, flags.model):
        await ensure_model(loader, output, yes=flags.yes)
    async with open_watched(loader, output) as engine:
        return await _submit(engine, request, settings, show, output)


async def _perform_on_server(request: Request, output: Output) -> int:
    """Run a prompt on the command line's server. Its files are read on this machine; everything else happens on the server."""
    flags = request.flags
    if flags.worktree is not None or flags.yes_download:
        name = "--worktree" if flags.worktree is not None else "--yes-download"
        raise UsageError(f"{name} can't be used with --url, because it applies to the machine of the server.", fix="Leave it out.")
    schema = read_schema(flags.schema) if flags.schema is not None else None
    show = make_show(request.shown, output)
    settings = run_settings(flags, schema, attended=output.attended)
    async with open_remote(output) as engine:
        named, existing = await _found(engine, request, "")
        answers = await _answers(engine, request, existing) if existing is not None else None
        await _check_not_waiting(engine, flags, existing)
        await _show_history(engine, request, existing, output)
        prompt = Prompt(
            request.typed.parts,
            conversation=existing.id if existing else None,
            directory=str(here()),
            agent=flags.agent,
            model=flags.model,
            mode=flags.mode,
            on_busy=flags.on_busy,
            settings=settings,
            answers=answers,
            temporary=flags.temporary,
        )
        place = Place(None, prompt.directory, attended=output.attended, mode=prompt.mode or "", own=configured(output).settings)
        prompt = await _referring(prompt, place, output, request.typed.piped)
        submitted = await engine.submit(replace(prompt, allowed_uris=tuple(map(str, flags.allow or ()))))
        _say_where(submitted, named, existing, output)
        async with deleted_at_end(submitted.conversation, engine, output):
            return await _follow(engine, submitted, settings, show, output)


def make_show(shown: ShowFlags, output: Output) -> Show:
    """Return the object that shows the run in the chosen output format. Text is rendered in a terminal and plain elsewhere."""
    form = shown.form()
    return attribute(_SCREEN)(output) if form == "text" and output.stdout_terminal else _SHOWS[form](output)


async def _submit(engine: Engine, request: Request, settings: JsonObject, show: Show, output: Output) -> int:
    directory = request.directory or str(here())
    flags = request.flags
    named, existing = await _found(engine, request, directory)
    answers = await _answers(engine, request, existing) if existing is not None else None
    await _check_not_waiting(engine, flags, existing)
    await _show_history(engine, request, existing, output)
    allowed = chosen_folders(map(str, flags.allow or ()), directory)
    if existing is not None and allowed:
        existing = await allow_folders(engine, existing.id, allowed, directory)
    prompt = Prompt(
        request.typed.parts,
        conversation=existing.id if existing else None,
        directory=directory,
        allowed_uris=with_folders((), directory, allowed),
        agent=flags.agent,
        model=flags.model,
        mode=flags.mode,
        once=request.command is not None and (request.command.agent is not None or request.command.model is not None),
        on_busy=flags.on_busy,
        settings=settings,
        answers=answers,
        temporary=flags.temporary,
    )
    if request.command is None:
        prompt = await with_references(engine, prompt, existing, output, piped=request.typed.piped)
    await prepare_models(engine, flags, existing, output)
    submitted = await engine.runs.submit(prompt)
    if request.chosen:
        await engine.store.conversations.update(submitted.conversation.id, settings=request.chosen)
    _say_where(submitted, named, existing, output)
    async with purged([submitted.conversation.id] if flags.temporary else [], engine, output):
        return await _follow(engine, submitted, settings, show, output)


async def _found(engine: AnyEngine, request: Request, directory: str) -> tuple[Conversation | None, Conversation | None]:
    """Return the conversation that the user named, and the conversation that continues it. Both are None for a new one."""
    if request.conversation is None:
        return None, None
    named = await find_conversation(engine, request.conversation, directory)
    check_new(request.flags)
    return named, await copy_of(engine.store.conversations, named) or named


async def _show_history(engine: AnyEngine, request: Request, existing: Conversation | None, output: Output) -> None:
    if existing is not None and request.show_history and output.stdout_terminal and request.shown.form() == "text":
        output.say(f"{existing.title or 'untitled'} · {existing.id}", "bold")
        print_messages(await with_edits(engine.store, await engine.store.conversations.branch(existing.id)), output)


async def _follow(engine: AnyEngine, submitted: Submitted, settings: JsonObject, show: Show, output: Output) -> int:
    follower = Follower(engine, output, show, stops=not submitted.steered)
    code = await follower.follow(submitted.run, submitted.conversation, submitted.seq)
    schema = settings.get("schema")
    if code == 0 and isinstance(schema, dict):
        message = await engine.store.conversations.message(submitted.run.message)
        if not is_withheld(message.metadata):  # a skipped run has no answer
            await check_answer(message, schema)
    return code


async def _check_not_waiting(engine: AnyEngine, flags: RunFlags, existing: Conversation | None) -> None:
    """Raise Busy if a run of the conversation is waiting for the user, because another prompt would cancel it."""
    if existing is None or flags.on_busy == "interrupt":
        return
    for run in await engine.store.records.runs(conversation=existing.id, statuses=frozenset({"waiting"})):
        if (approval := await open_approval(engine.store, run.id)) is not None:
            needed = "approval" if approval.questions is None else "an answer"
            raise Busy(
                f"A run in this conversation is waiting for {needed}, and another prompt would cancel it.",
                fix=f"Answer with `{answer_command(approval, existing.id)}`, or use --on-busy interrupt to cancel the run.",
            )


def _say_where(submitted: Submitted, named: Conversation | None, existing: Conversation | None, output: Output) -> None:
    """Print the conversation and folder of the prompt, or that it was queued, unless this is obvious."""
    if named is not None and submitted.conversation.id != named.id:
        output.say(f"moot: {copied(named, submitted.conversation)}", "dim")
    if existing is not None and not existing.directory:
        output.say(f"moot: {in_folder(submitted.conversation)}", "dim")
    if submitted.steered:
        output.say("moot: added to the running answer", "dim")
    elif submitted.run.status == "queued":
        output.say("moot: queued behind another run", "dim")


async def with_references(engine: Engine, prompt: Prompt, conversation: Conversation | None, output: Output, *, piped: str = "") -> Prompt:
    """Add the content that the prompt's text refers to, and print notes about this content. `piped` is appended unchanged."""
    folder = (conversation.directory if conversation is not None else "") or prompt.directory
    place = Place(
        engine.runtime,
        folder,
        conversation,
        prompt.agent or "",
        attended=output.attended,
        mode=prompt.mode or "",
        allowed_uris=prompt.allowed_uris,
    )
    return await _referring(prompt, place, output, piped)


async def _referring(prompt: Prompt, place: Place, output: Output, piped: str) -> Prompt:
    prompt, notes = await attach_references(prompt, place, literal=piped)
    for note in notes:
        output.say(f"moot: {note}", "yellow")
    return prompt


async def _answers(engine: AnyEngine, request: Request, existing: Conversation) -> str | None:
    """Return the id of the message to answer if there is no prompt, otherwise None. Raise UsageError if there is no message to answer."""
    if request.typed:
        return None
    last = next(iter(await engine.store.conversations.branch(existing.id, limit=1)), None)
    if last is not None and (last.role == "user" or request.again):
        return last.id
    raise UsageError(
        f"The last message of {existing.title or existing.id!r} is an answer, so there is nothing to answer.",
        fix=f'Run moot chat continue {existing.id[:13]} "…", or use --again for another answer.',
    )


async def prepare_models(engine: Engine, flags: RunFlags, existing: Conversation | None, output: Output) -> None:
    """Download the weights of the prompt's model if they are missing, and print a warning if --max-cost can't limit the run."""
    agent = agent_named(engine.settings, flags.agent or (existing.agent if existing else "default"))
    if agent is None:
        return  # the engine reports the unknown agent
    if agent.agent_type != "moot":
        if flags.max_cost is not None:
            output.say(f"moot: {agent.name} makes its own model calls, so --max-cost doesn't limit them", "yellow")
        return
    model = flags.model or (existing.next_model if existing and not flags.agent else "") or agent.model
    await provide_weights(engine.providers, model, output, consent=flags.yes_download)
    if flags.max_cost is not None:
        for choice in await engine.providers.choices(model, fallback_models(engine.settings, agent)):
            if choice.model.price is None:
                output.say(f"moot: the price of {choice.model.id} is unknown, so --max-cost stops the run after a call to it", "yellow")
