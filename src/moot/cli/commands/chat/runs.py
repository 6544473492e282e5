"""The commands `moot chat new`, `continue`, `resume`, `attach` and `stop`, and `moot ps`."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated

import anyio

from moot.cli.arguments.signatures import LATEST, AsJson, Parameter
from moot.cli.console.format import age, print_table
from moot.cli.console.output import Output
from moot.cli.console.results import brief
from moot.cli.context.configuration import here
from moot.cli.context.engine import check_new, connected, connected_at, find_conversation, opened
from moot.cli.context.output import Out
from moot.cli.context.references import live_run, live_runs
from moot.cli.follow import Follower
from moot.cli.options import NO_FLAGS, NO_SHOW, WORKTREE, Files, RunFlags, ShowFlags, Which, run_settings
from moot.cli.remote import AnyEngine
from moot.cli.remote.address import remote_url
from moot.cli.run import Request, gather, make_show, perform
from moot.cli.terminal.prompts.layout import moves_cursor
from moot.commands import RunOverrides
from moot.convert.serialization import describe_cost
from moot.engine import Engine
from moot.engine.locks import Place, owner_place
from moot.errors import NotFound, UsageError
from moot.features.family import Relative, family_of
from moot.features.settings import chosen_folders
from moot.plugins.registry import Registry, attribute
from moot.runtime.children import is_awaited
from moot.types.approval import Approval
from moot.types.canonical import Json, JsonObject, loads
from moot.types.conversation import Conversation
from moot.types.message import Part
from moot.types.run import TERMINAL, Run

_LOOPS = Registry("moot.loops", {"terminal": "moot.cli.repl.loop:run_repl"})
_BROWSE = "moot.cli.commands.chat.run_browser:browse"
"""Import paths, loaded on first use, because the REPL and the interactive list are not needed in a pipe."""


def stays(flags: RunFlags, shown: ShowFlags, output: Output) -> bool:
    """Return whether to keep the conversation open: in a terminal, if no option applies only to a single answer."""
    about_one = (flags.schema, flags.max_steps, flags.max_cost, flags.timeout)
    return (
        output.attended
        and not remote_url()
        and shown.form() == "text"
        and flags.on_busy == "reject"
        and all(flag is None for flag in about_one)
    )


async def stay(conversation: str | None, parts: Sequence[Part], flags: RunFlags, output: Output, directory: str = "") -> int:
    """Print the conversation, send the prompt and continue until the user leaves. Return the exit code."""
    if flags.worktree is not None:
        async with attribute(WORKTREE)(flags.worktree, conversation, output) as folder:
            return await stay(conversation, parts, replace(flags, worktree=None), output, folder)
    tools = run_settings(flags, None, attended=True).get("tools")
    named = [str(name) for name in tools] if isinstance(tools, list) else [] if tools is False else None
    overrides = RunOverrides(agent=flags.agent, model=flags.model, mode=flags.mode, effort=flags.effort, detail=flags.detail, tools=named)
    allowed = chosen_folders(map(str, flags.allow or ()), str(here()))
    repl = _LOOPS.load("terminal")
    place = {"allowed": allowed, "directory": directory, "temporary": flags.temporary}
    return await repl(conversation, output, prompt=parts, overrides=overrides, yes=flags.yes, **place)


Words = Annotated[str, Parameter(metavar="PROMPT", help="Text of the prompt, with or without quotes. Standard input is appended.")]


async def new(*prompt: Words, file: Files | None = None, flags: RunFlags = NO_FLAGS, shown: ShowFlags = NO_SHOW, output: Out) -> int:
    """Start a conversation. In a terminal, keep it open for further prompts."""
    staying = stays(flags, shown, output)
    typed = gather(" ".join(prompt) or None, file or [], output, needed=not staying)
    return await stay(None, typed.parts, flags, output) if staying else await perform(Request(typed, flags, shown), output)


async def continue_(
    conversation: Which,
    /,
    *prompt: Words,
    again: Annotated[bool, Parameter(help="Generate the last answer again on a new branch.")] = False,
    file: Files | None = None,
    flags: RunFlags = NO_FLAGS,
    shown: ShowFlags = NO_SHOW,
    output: Out,
) -> int:
    """Continue a conversation, or answer its last message. In a terminal, keep the conversation open."""
    typed = gather(" ".join(prompt) or None, file or [], output, needed=False)
    if typed and again:
        raise UsageError("--again does not take a prompt.", fix=f"moot chat continue {conversation} --again")
    check_new(flags)
    if stays(flags, shown, output) and not again:
        async with opened(output) as engine:
            found = await find_conversation(engine, conversation, str(here()))
        if found.deleted_at is not None:
            raise NotFound(f"Conversation {found.title or found.id!r} is deleted.", fix=f"moot chat restore {found.id[:13]}")
        return await stay(found.id, typed.parts, flags, output)
    return await perform(Request(typed, flags, shown, conversation, again=again, show_history=True), output)


async def resume(conversation: Which, /, *, shown: ShowFlags = NO_SHOW, output: Out) -> int:
    """Resume an interrupted or waiting run and show its whole output."""
    display = make_show(shown, output)
    async with connected_at(conversation, output) as (engine, found):
        run = await live_run(engine.store, found)
        if run is None:
            raise UsageError(f"Conversation {found.id!r} has no waiting or interrupted run.", fix=f"moot chat continue {found.id[:13]}")
        message = await engine.store.conversations.message(run.message)
        to_ask = run.status == "waiting" and output.attended and await engine.store.records.approvals(run=run.id)
        taken = run if to_ask else await engine.runs.resume(run.id)
        return await Follower(engine, output, display).follow(taken, found, max(message.first_seq - 1, 0))


async def attach(conversation: Which, /, *, shown: ShowFlags = NO_SHOW, output: Out) -> int:
    """Follow an active run from the start of its answer to the end. Detaching does not stop the run."""
    display = make_show(shown, output)
    async with connected_at(conversation, output) as (engine, found):
        run = await live_run(engine.store, found)
        if run is None:
            raise UsageError(f"Conversation {found.title or found.id!r} has no active run.", fix="moot ps")
        if run.status == "interrupted":
            raise UsageError("The run was interrupted.", fix=f"moot chat resume {found.id[:13]}")
        message = await engine.store.conversations.message(run.message)
        return await Follower(engine, output, display, stops=False).follow(run, found, max(message.first_seq - 1, 0))


async def stop(conversation: Which, /, *, json: AsJson = False, output: Out) -> None:
    """Stop a conversation's run and its sub-agents in any process. The output so far is kept."""
    async with connected_at(conversation, output) as (engine, found):
        run = await live_run(engine.store, found)
        children = [child for child in await engine.store.records.children(conversation=found.id) if child.status not in TERMINAL]
        for one in (*([run] if run is not None else ()), *children):
            await engine.runs.cancel(one.id)
            await engine.runs.wait(one.id)
        run = run and await engine.store.records.run(run.id)
    if json:
        output.json({"ok": True, "conversation": found.id, "run": run.id if run else None, "status": run.status if run else None})
        return
    if run is not None or not children:
        output.say(f"moot: {run.status}" if run is not None else "moot: no active run")
    if children:
        output.say(f"moot: stopped {', '.join(child.agent for child in children)}")


INTERVAL = 0.5
"""Number of seconds between two looks at the runs of all processes."""


LATE = 60.0
"""Maximum number of seconds between a run's wake-up time and its continuation.
After that, the process that should continue it is assumed to have ended.
"""


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run with what the list of runs shows about it."""

    run: Run
    conversation: Conversation
    place: Place | None
    waits_for: str

    def to_json(self) -> JsonObject:
        run = self.run
        return {
            "id": run.id,
            "conversation": run.conversation,
            "title": self.conversation.title,
            "agent": run.agent,
            "model": self.model,
            "status": run.status,
            "awaits": run.awaits,
            "parent_run": run.parent_run,
            "owner": run.owner,
            "pid": self.place.pid if self.place else None,
            "host": self.place.host if self.place else None,
            "since": self.since,
            "waits_for": self.waits_for or None,
        }

    @property
    def model(self) -> str:
        return self.run.model or self.conversation.model

    @property
    def since(self) -> int:
        return self.run.started_at or self.run.created_at


Watch = Annotated[bool, Parameter(name="--watch", help="Print the list again after every change, until Ctrl+C.")]


Once = Annotated[bool, Parameter(name="--once", help="Print the list once and exit.")]


async def ps(*, watch: Watch = False, once: Once = False, json: AsJson = False, output: Out) -> int:
    """List the active runs of all moot processes, oldest first. In a terminal, keep the list on the screen and up to date, also show runs
    that ended within a day, and let the user open, answer and stop runs.
    """
    if output.attended and moves_cursor() and not (watch or once or json or remote_url()):
        browse: Callable[[Output], Awaitable[int]] = attribute(_BROWSE)
        return await browse(output)
    shown: list[JsonObject] | None = None
    async with connected(output) as engine:
        while True:
            lines = await live_lines(engine)
            found = [line.to_json() for line in lines]
            if found != shown:
                shown = found
                if watch and not json and output.stdout_terminal:
                    output.say(time.strftime("── %H:%M:%S"), "dim")
                _show(lines, output, json=json)
            if not watch:
                return 0
            await anyio.sleep(INTERVAL)


async def live_lines(engine: AnyEngine) -> list[RunLine]:
    """Return the running, waiting, interrupted and queued runs, oldest first."""
    lines: list[RunLine] = []
    for run in reversed(await live_runs(engine)):
        place = await _place(engine, run)
        with suppress(NotFound):  # the conversation was purged meanwhile
            conversation = await engine.store.conversations.get(run.conversation)
            lines.append(RunLine(run, conversation, place, await waits_for(engine, run)))
    return lines


async def _place(engine: AnyEngine, run: Run) -> Place | None:
    if run.owner is None:
        return None
    return owner_place(engine.settings.owners, run.owner) if isinstance(engine, Engine) else await engine.place(run.id)


def _show(lines: Sequence[RunLine], output: Output, *, json: bool) -> None:
    if json:
        output.json({"data": list[Json]([line.to_json() for line in lines]), "next_cursor": None})
        return
    if not lines:
        output.say("moot: no active runs", "dim")
        return
    now = time.time()
    head = ["ID", "STATUS", "SINCE", "PROCESS", "AGENT", "MODEL", "WAITS FOR", "TITLE"]
    print_table(output, head, [_row(line, now) for line in lines])


async def waits_for(engine: AnyEngine, run: Run) -> str:
    """Describe what the run is waiting for. Return an empty string if it is not waiting."""
    if run.status == "queued":
        return "another run"
    if run.status == "interrupted":
        return f"moot chat resume {run.conversation[:13]}"
    if run.status != "waiting":
        return ""
    if run.awaits == "run":
        return ", ".join(child.agent for child in await engine.store.records.children(run.id) if is_awaited(child))
    if run.awaits == "time":
        wake_at = (run.wake_at or 0) / 1000
        if time.time() > wake_at + LATE:  # the process that would continue it has ended
            return f"moot chat resume {run.conversation[:13]}"
        return f"{time.strftime('%H:%M:%S', time.localtime(wake_at))} (in {age(round(time.time() * 1000), wake_at)})"
    return ", ".join(_wants(approval) for approval in await engine.store.records.approvals(run=run.id))


def _wants(approval: Approval) -> str:
    if approval.by_client:
        return f"client to run {approval.tool}"
    return "answer" if approval.questions else f"approval of {approval.tool} {brief(loads(approval.arguments))}"


def _row(line: RunLine, now: float) -> list[str]:
    place = f"{line.place.pid} on {line.place.host}" if line.place else "-"
    run = line.run
    title = line.conversation.title or "untitled"
    waits_for = line.waits_for or "-"
    return [run.conversation[:13], run.status, age(line.since, now), place, run.agent, line.model or "-", waits_for, title]


Root = Annotated[
    str,
    Parameter(kind="conversation", help="Conversation whose sub-agents to show."),
]


async def agent_tree(conversation: Root = LATEST, /, *, json: AsJson = False, output: Out) -> None:
    """Print a conversation and its sub-agents."""
    async with connected_at(conversation, output) as (engine, found):
        top = await family_of(engine.store, found)
    if json:
        output.json(top.to_json())
        return
    _print_relative(output, top, "", "")


def _print_relative(output: Output, relative: Relative, first: str, rest: str) -> None:
    """Print a conversation, the files it changed, and its children. `first` and `rest` are the prefixes of its first and later lines."""
    shown = relative.run.status if relative.run is not None and relative.status == "finished" else relative.status
    known = describe_cost(relative.cost or None, relative.unpriced_runs)
    cost = f"  {known}" if known else ""
    conversation = relative.conversation
    line = f"{first}{conversation.agent}  {shown}{cost}  {conversation.id[:13]}  {conversation.title or 'untitled'}"
    output.line(line)
    if relative.files:
        output.line(f"{rest}{'│ ' if relative.children else '  '}wrote {', '.join(relative.files)}")
    for child in relative.children:
        last = child is relative.children[-1]
        _print_relative(output, child, f"{rest}{'└ ' if last else '├ '}", f"{rest}{'  ' if last else '│ '}")
