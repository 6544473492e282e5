"""`moot chat edit`: a message, or the whole of a conversation, in the person's own editor."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import anyio.to_thread

from moot.cli.arguments.parameters import Parameter
from moot.cli.editor import edit_text, keep_text
from moot.cli.opening import opened_at
from moot.cli.options import Out, RunFlags, ShowFlags, Which
from moot.cli.output import Output
from moot.cli.references import find_message
from moot.cli.revising.one import Wishes, answer, edit_message, pick_message
from moot.cli.revising.whole import apply, revision, whole
from moot.engine import Engine
from moot.errors import UsageError
from moot.types.conversation import Conversation
from moot.types.run import Prompt

_NO_FLAGS = RunFlags()
_NO_SHOW = ShowFlags()


async def edit(
    conversation: Which,
    message: Annotated[str | None, Parameter(help="Its number in `moot chat tree`, or its id; without it a list of your own ones.")] = None,
    /,
    *,
    everything: Annotated[bool, Parameter(name="--all", help="The whole conversation as one text.")] = False,
    no_answer: Annotated[bool, Parameter(name="--no-answer", help="Only store what was changed.")] = False,
    source: Annotated[Path | None, Parameter(name="--from", help="Begin with the text in this file.", kind="file")] = None,
    flags: RunFlags = _NO_FLAGS,
    shown: ShowFlags = _NO_SHOW,
    output: Out,
) -> int:
    """Opens a message in the editor that VISUAL or EDITOR names; what comes of it is a new branch, and a user's message is answered."""
    if everything and message is not None:
        raise UsageError("--all takes the whole conversation, so it takes no message", fix="Leave one of them out.")
    wishes = Wishes(flags, shown, no_answer)
    text = "" if source is None else await anyio.to_thread.run_sync(partial(_read, source))
    async with opened_at(conversation, output) as (engine, found):
        if everything:
            return await edit_whole(engine, found, wishes, output, text=text)
        nodes = await engine.store.tree.nodes(found.id)
        if message is not None:
            return await edit_message(engine, found, find_message(nodes, message), wishes, output, text=text)
        own = [node for node in nodes if node.role == "user"]
        if not output.attended:
            raise UsageError("which message is to be edited?", fix=f"moot chat edit {conversation} MESSAGE, or --all")
        node = await pick_message(own, output, title=f"Edit a message of {found.title or found.id}", enter="edit")
        return 0 if node is None else await edit_message(engine, found, node, wishes, output, text=text)


async def edit_whole(engine: Engine, conversation: Conversation, wishes: Wishes, output: Output, *, text: str = "") -> int:
    """The shown branch in the editor (`text` = an earlier attempt); the exit code."""
    messages = await engine.store.conversations.branch(conversation.id)
    if not messages:
        raise UsageError(f"{conversation.title or conversation.id!r} has no messages yet")
    if any(message.status == "streaming" for message in messages):
        raise UsageError("an answer is being written there", fix=f"Wait for its end, or moot chat stop {conversation.id[:13]}")
    numbers = {node.id: node.no for node in await engine.store.tree.nodes(conversation.id)}
    again = f"moot chat edit {conversation.id} --all --from {{path}}"
    edited = await edit_text(text or whole(messages, numbers), output=output, again=again)
    if edited is None and not text:
        output.say("moot: nothing was changed", "dim")
        return 0
    edited = text if edited is None else edited
    try:
        wanted = revision(messages, numbers, edited)
    except UsageError as error:
        where = await keep_text(edited)
        raise UsageError(
            f"{error.message}; the text is kept in {where}", fix=f"{error.fix} Go on with it: {again.format(path=where)}"
        ) from error
    if wanted is None:
        output.say("moot: nothing was changed", "dim")
        return 0
    last = await apply(engine.store, conversation, wanted)
    behind = "from the first message on" if wanted.parent is None else f"behind message {numbers[wanted.parent]}"
    output.say(f"moot: a new branch {behind}; moot chat tree {conversation.id[:13]} shows the old one too")
    if wishes.no_answer or not wanted.messages or wanted.messages[-1].role != "user":
        return 0
    return await answer(engine, conversation, Prompt((), answers=last), wishes, output)


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise UsageError(f"cannot read {str(path)!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{str(path)!r} is not UTF-8 from byte {error.start} on") from error
