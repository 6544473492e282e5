"""`moot chat edit`: edit a message or a whole conversation in the user's editor."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import anyio.to_thread

from moot.cli.arguments.parameters import Parameter
from moot.cli.editor import edit_text, save_text
from moot.cli.opening import opened_at
from moot.cli.options import Out, RunFlags, ShowFlags, Which
from moot.cli.output import Output
from moot.cli.references import find_message
from moot.cli.revising.one import EditOptions, answer, edit_message, pick_message
from moot.cli.revising.whole import apply, render_conversation, revision
from moot.engine import Engine
from moot.errors import UsageError
from moot.types.conversation import Conversation
from moot.types.run import Prompt

_NO_FLAGS = RunFlags()
_NO_SHOW = ShowFlags()


async def edit(
    conversation: Which,
    message: Annotated[str | None, Parameter(help="Message number in `moot chat tree`, or ID. Default: choose from a list.")] = None,
    /,
    *,
    everything: Annotated[bool, Parameter(name="--all", help="Edit the whole conversation as one text.")] = False,
    no_answer: Annotated[bool, Parameter(name="--no-answer", help="Store the change without generating an answer.")] = False,
    source: Annotated[Path | None, Parameter(name="--from", help="Start from the text in this file.", kind="file")] = None,
    flags: RunFlags = _NO_FLAGS,
    shown: ShowFlags = _NO_SHOW,
    output: Out,
) -> int:
    """Edit a message in your editor. The change becomes a new branch; a changed prompt is answered again."""
    if everything and message is not None:
        raise UsageError("--all edits the whole conversation and cannot be combined with a message.", fix="Omit one of them.")
    options = EditOptions(flags, shown, no_answer)
    text = "" if source is None else await anyio.to_thread.run_sync(partial(_read, source))
    async with opened_at(conversation, output) as (engine, found):
        if everything:
            return await edit_whole(engine, found, options, output, text=text)
        nodes = await engine.store.tree.nodes(found.id)
        if message is not None:
            return await edit_message(engine, found, find_message(nodes, message), options, output, text=text)
        own = [node for node in nodes if node.role == "user"]
        if not output.attended:
            raise UsageError("No message given.", fix=f"Run moot chat edit {conversation} MESSAGE, or add --all.")
        node = await pick_message(own, output, title=f"Edit a message of {found.title or found.id}", enter="edit")
        return 0 if node is None else await edit_message(engine, found, node, options, output, text=text)


async def edit_whole(engine: Engine, conversation: Conversation, options: EditOptions, output: Output, *, text: str = "") -> int:
    """Edit the shown branch, or `text`, an earlier attempt. Return the exit code."""
    messages = await engine.store.conversations.branch(conversation.id)
    if not messages:
        raise UsageError(f"{conversation.title or conversation.id!r} has no messages yet.")
    if any(message.status == "streaming" for message in messages):
        raise UsageError("An answer is being generated.", fix=f"Wait for it, or run moot chat stop {conversation.id[:13]}")
    numbers = {node.id: node.no for node in await engine.store.tree.nodes(conversation.id)}
    again = f"moot chat edit {conversation.id} --all --from {{path}}"
    edited = await edit_text(text or render_conversation(messages, numbers), output=output, again=again)
    if edited is None and not text:
        output.say("moot: nothing was changed", "dim")
        return 0
    edited = text if edited is None else edited
    try:
        changes = revision(messages, numbers, edited)
    except UsageError as error:
        where = await save_text(edited)
        raise UsageError(
            f"{error.message} The text is saved in {where}", fix=f"{error.fix} To continue, run {again.format(path=where)}"
        ) from error
    if changes is None:
        output.say("moot: nothing was changed", "dim")
        return 0
    last = await apply(engine.store, conversation, changes)
    start = "at the first message" if changes.parent is None else f"after message {numbers[changes.parent]}"
    output.say(f"moot: created a new branch {start}; moot chat tree {conversation.id[:13]} shows all branches")
    if options.no_answer or not changes.messages or changes.messages[-1].role != "user":
        return 0
    return await answer(engine, conversation, Prompt((), answers=last), options, output)


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise UsageError(f"Cannot read {str(path)!r}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{str(path)!r} is not UTF-8 (byte {error.start}).") from error
