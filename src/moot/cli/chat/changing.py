"""`moot chat delete | restore | rename | archive | fork | switch`: what changes a conversation without a model. Nothing is lost by it."""

from __future__ import annotations

from typing import Annotated

from moot.cli.arguments.parameters import Parameter
from moot.cli.opening import opened_at
from moot.cli.options import AsJson, Out, Which
from moot.cli.output import Output
from moot.cli.references import find_message
from moot.engine import Engine
from moot.errors import UsageError
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation

Messages = Annotated[
    list[str], Parameter(name="--message", help="A message instead: its number in `moot chat tree`, or its id; give it again for more.")
]
Place = Annotated[str, Parameter(help="A message: its number in `moot chat tree`, or its id.")]


async def delete(conversation: Which, /, *, message: Messages | None = None, json: AsJson = False, output: Out) -> None:
    """Marks a conversation, or messages of it, deleted: they are shown no more, and nothing of them is lost."""
    async with opened_at(conversation, output) as (engine, found):
        if message:
            await _messages(engine, found, message, output, restore=False, json=json)
            return
        await engine.store.conversations.delete(found.id)
    _done(output, json, found, f"deleted {_name(found)}; moot chat restore {found.id[:13]} brings it back")


async def restore(conversation: Which, /, *, message: Messages | None = None, json: AsJson = False, output: Out) -> None:
    """Brings a deleted conversation, or messages of one, back."""
    async with opened_at(conversation, output) as (engine, found):
        if message:
            await _messages(engine, found, message, output, restore=True, json=json)
            return
        if found.deleted_at is None:
            raise UsageError(f"the conversation {conversation!r} is not deleted", fix=f"moot chat show {found.id[:13]}")
        await engine.store.conversations.delete(found.id, restore=True)
    _done(output, json, found, f"restored {_name(found)}")


async def rename(
    conversation: Which, /, *title: Annotated[str, Parameter(help="Its title from now on.")], json: AsJson = False, output: Out
) -> None:
    """Gives a conversation a title, which no model replaces."""
    words = " ".join(" ".join(title).split())
    if not words:
        raise UsageError("a title is wanted", fix=f"moot chat rename {conversation} TITLE")
    async with opened_at(conversation, output) as (engine, found):
        renamed = await engine.store.conversations.rename(found.id, words, "user")
    _done(output, json, renamed, f"{found.id[:13]} is called {renamed.title} now", title=renamed.title)


async def archive(
    conversation: Which,
    /,
    *,
    undo: Annotated[bool, Parameter(name="--undo", help="Back into the list.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Takes a conversation out of the list; it can still be found, shown and gone on with."""
    async with opened_at(conversation, output) as (engine, found):
        await engine.store.conversations.update(found.id, archived=not undo)
    words = f"{_name(found)} is in the list again" if undo else f"archived {_name(found)}; moot chat list --archived has it"
    _done(output, json, found, words, archived=not undo)


async def fork(
    conversation: Which,
    message: Place | None = None,
    /,
    *,
    title: Annotated[str, Parameter(name="--title", help="The new one's title.")] = "",
    json: AsJson = False,
    output: Out,
) -> None:
    """Copies a conversation up to a message into a new one; without a message all that is shown of it."""
    async with opened_at(conversation, output) as (engine, found):
        at = None if message is None else find_message(await engine.store.tree.nodes(found.id), message).id
        made = await engine.store.tree.fork(found.id, message=at, title=title)
    _done(output, json, made, f"forked {_name(found)} as {made.id[:13]} ({made.title}); moot chat continue {made.id[:13]}", source=found.id)


async def switch(
    conversation: Which,
    message: Place,
    /,
    *,
    exactly: Annotated[bool, Parameter(name="--exactly", help="End the branch with that message; what is behind it is not shown.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Shows the branch through a message, and goes on with it from now on."""
    async with opened_at(conversation, output) as (engine, found):
        nodes = await engine.store.tree.nodes(found.id)
        switched = await engine.store.tree.switch(found.id, find_message(nodes, message).id, exactly=exactly)
    number = next(node.no for node in nodes if node.id == switched.head)
    _done(output, json, switched, f"{_name(found)} ends with message {number} now", head=switched.head)


async def _messages(engine: Engine, found: Conversation, named: list[str], output: Output, *, restore: bool, json: bool) -> None:
    nodes = await engine.store.tree.nodes(found.id)
    meant = [find_message(nodes, name) for name in named]
    changed = await engine.store.tree.delete(found.id, [node.id for node in meant], restore=restore)
    numbers = ", ".join(str(node.no) for node in meant)
    back = "" if restore else f"; moot chat restore {found.id[:13]} --message {meant[0].no} brings it back"
    _done(
        output,
        json,
        found,
        f"{'restored' if restore else 'deleted'} message {numbers} of {_name(found)}{back}",
        messages=list[Json](changed),
    )


def _name(conversation: Conversation) -> str:
    return conversation.title or conversation.id


def _done(output: Output, as_json: bool, conversation: Conversation, words: str, **facts: Json) -> None:
    if as_json:
        document: JsonObject = {"ok": True, "conversation": conversation.id, **facts}
        output.json(document)
    else:
        output.say(f"moot: {words}")
