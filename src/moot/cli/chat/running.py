"""The commands `moot chat new`, `continue` and `resume`."""

from __future__ import annotations

from typing import Annotated

from moot.cli.arguments.parameters import Parameter
from moot.cli.chat.looping import stay, stays
from moot.cli.configured import here
from moot.cli.following import Follower
from moot.cli.opening import opened, opened_at
from moot.cli.options import Files, Out, RunFlags, ShowFlags, Which
from moot.cli.prompts import gather
from moot.cli.references import find_conversation, live_run
from moot.cli.run import Request, make_show, perform
from moot.errors import NotFound, UsageError

_NO_FLAGS = RunFlags()
_NO_SHOW = ShowFlags()

Words = Annotated[str, Parameter(metavar="PROMPT", help="Prompt text. Words are joined, and standard input is appended.")]


async def new(*prompt: Words, file: Files | None = None, flags: RunFlags = _NO_FLAGS, shown: ShowFlags = _NO_SHOW, output: Out) -> int:
    """Start a conversation. On a terminal, keep it open."""
    staying = stays(flags, shown, output)
    parts = gather(" ".join(prompt) or None, file or [], output, needed=not staying)
    return await stay(None, parts, flags, output) if staying else await perform(Request(parts, flags, shown), output)


async def continue_(
    conversation: Which,
    /,
    *prompt: Words,
    again: Annotated[bool, Parameter(name="--again", help="Generate the last answer again on a new branch.")] = False,
    file: Files | None = None,
    flags: RunFlags = _NO_FLAGS,
    shown: ShowFlags = _NO_SHOW,
    output: Out,
) -> int:
    """Continue a conversation, or answer its last message. On a terminal, keep the conversation open."""
    parts = gather(" ".join(prompt) or None, file or [], output, needed=False)
    if parts and again:
        raise UsageError("--again does not take a prompt.", fix=f"moot chat continue {conversation} --again")
    if stays(flags, shown, output) and not again:
        async with opened(output) as engine:
            found = await find_conversation(engine, conversation, str(here()))
        if found.deleted_at is not None:
            raise NotFound(f"Conversation {found.title or found.id!r} is deleted.", fix=f"moot chat restore {found.id[:13]}")
        return await stay(found.id, parts, flags, output)
    return await perform(Request(parts, flags, shown, conversation, again=again, show_history=True), output)


async def resume(conversation: Which, /, *, shown: ShowFlags = _NO_SHOW, output: Out) -> int:
    """Resume an interrupted or waiting run and show its whole output."""
    display = make_show(shown, output)
    async with opened_at(conversation, output) as (engine, found):
        run = await live_run(engine.store, found)
        if run is None:
            raise UsageError(f"Conversation {found.id!r} has no waiting or interrupted run.", fix=f"moot chat continue {found.id[:13]}")
        message = await engine.store.conversations.message(run.message)
        to_ask = run.status == "waiting" and output.attended and await engine.store.records.approvals(run=run.id)
        taken = run if to_ask else await engine.runs.resume(run.id)
        return await Follower(engine, output, display).follow(taken, found, max(message.first_seq - 1, 0))
