"""Commands that change a conversation, such as `moot chat delete`, `rename`, `archive`, `tag` and `fork`. None of them loses data."""

from __future__ import annotations

from typing import Annotated

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.output import Output
from moot.cli.context.engine import connected_at, opened_at
from moot.cli.context.output import Out
from moot.cli.context.references import find_message
from moot.cli.options import Which
from moot.cli.remote import AnyEngine
from moot.config.document import parse_value
from moot.errors import UsageError
from moot.features.settings import settings_change
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import SETTINGS, Conversation

Messages = Annotated[
    list[str],
    Parameter(
        name="--message",
        help="Delete or restore only this message: its number in 'moot chat tree', or its id. May be repeated.",
    ),
]
Place = Annotated[str, Parameter(help="Message: its number in 'moot chat tree', or its id.")]


async def delete(conversation: Which, /, *, message: Messages | None = None, json: AsJson = False, output: Out) -> None:
    """Delete a conversation or some of its messages. Deleted items are hidden and can be restored."""
    async with connected_at(conversation, output) as (engine, found):
        if message:
            await _messages(engine, found, message, output, restore=False, json=json)
            return
        await engine.store.conversations.delete(found.id)
    _done(output, json, found, f"deleted {_name(found)}; restore it with: moot chat restore {found.id[:13]}")


async def restore(conversation: Which, /, *, message: Messages | None = None, json: AsJson = False, output: Out) -> None:
    """Restore a deleted conversation, or deleted messages in a conversation."""
    async with connected_at(conversation, output) as (engine, found):
        if message:
            await _messages(engine, found, message, output, restore=True, json=json)
            return
        if found.deleted_at is None:
            raise UsageError(f"Conversation {conversation!r} is not deleted.", fix=f"moot chat show {found.id[:13]}")
        await engine.store.conversations.delete(found.id, restore=True)
    _done(output, json, found, f"restored {_name(found)}")


async def rename(conversation: Which, /, *title: Annotated[str, Parameter(help="New title.")], json: AsJson = False, output: Out) -> None:
    """Set the title of a conversation. Generated titles never replace it."""
    words = " ".join(" ".join(title).split())
    if not words:
        raise UsageError("The title is empty.", fix=f"moot chat rename {conversation} TITLE")
    async with connected_at(conversation, output) as (engine, found):
        renamed = await engine.store.conversations.rename(found.id, words, "user")
    _done(output, json, renamed, f"renamed {found.id[:13]} to {renamed.title}", title=renamed.title)


async def archive(
    conversation: Which,
    /,
    *,
    undo: Annotated[bool, Parameter(help="Show the conversation in the list again.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Hide a conversation from the list. It can still be searched, shown and continued."""
    async with connected_at(conversation, output) as (engine, found):
        await engine.store.conversations.update(found.id, archived=not undo)
    words = f"unarchived {_name(found)}" if undo else f"archived {_name(found)}; list it with: moot chat list --archived"
    _done(output, json, found, words, archived=not undo)


async def pin(conversation: Which, /, *, json: AsJson = False, output: Out) -> None:
    """Pin a conversation to the top of the list."""
    await _pin(conversation, output, pinned=True, json=json)


async def unpin(conversation: Which, /, *, json: AsJson = False, output: Out) -> None:
    """Unpin a conversation."""
    await _pin(conversation, output, pinned=False, json=json)


async def _pin(conversation: str, output: Output, *, pinned: bool, json: bool) -> None:
    async with connected_at(conversation, output) as (engine, found):
        await engine.store.conversations.update(found.id, pinned=pinned)
    _done(output, json, found, f"{'pinned' if pinned else 'unpinned'} {_name(found)}", pinned=pinned)


async def tag(
    conversation: Which,
    /,
    *tags: Annotated[str, Parameter(metavar="TAG", help="Word of lowercase letters, digits, '-' and '_'.")],
    remove: Annotated[bool, Parameter(help="Remove these tags; without TAG, remove all.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Show, add or remove the tags of a conversation."""
    async with connected_at(conversation, output) as (engine, found):
        if missing := [tag for tag in tags if remove and tag not in found.tags]:
            own = f"Its tags: {', '.join(found.tags)}." if found.tags else "It has no tags."
            raise UsageError(f"The conversation {found.id[:13]} doesn't have the tag {missing[0]!r}.", fix=own)
        kept = [tag for tag in found.tags if tags and tag not in tags] if remove else [*found.tags, *tags]
        if tags or remove:
            found = await engine.store.conversations.update(found.id, tags=kept)
    shown = ", ".join(found.tags) or "no tags"
    _done(output, json, found, f"{_name(found)}: {shown}", tags=list[Json](found.tags))


async def fork(
    conversation: Which,
    message: Place | None = None,
    /,
    *,
    title: Annotated[str, Parameter(help="Title of the new conversation.")] = "",
    json: AsJson = False,
    output: Out,
) -> None:
    """Copy a conversation, up to and including a message, to a new one. If no message is given, copy the current branch."""
    async with connected_at(conversation, output) as (engine, found):
        at = None if message is None else find_message(await engine.store.tree.nodes(found.id), message).id
        created = await engine.store.tree.fork(found.id, message=at, title=title)
    _done(
        output,
        json,
        created,
        f"forked {_name(found)} as {created.id[:13]} ({created.title}); continue it with: moot chat continue {created.id[:13]}",
        source=found.id,
    )


async def switch(
    conversation: Which,
    message: Place,
    /,
    *,
    exactly: Annotated[bool, Parameter(help="End the branch with this message and hide the messages after it.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Switch to the branch that contains a message."""
    async with connected_at(conversation, output) as (engine, found):
        nodes = await engine.store.tree.nodes(found.id)
        switched = await engine.store.tree.switch(found.id, find_message(nodes, message).id, exactly=exactly)
    number = next(node.no for node in nodes if node.id == switched.head)
    _done(output, json, switched, f"{_name(found)} now ends with message {number}", head=switched.head)


async def settings(
    conversation: Which,
    /,
    *changes: Annotated[
        str, Parameter(metavar="KEY=VALUE", help="Setting to change, such as mode=edits or tools='[read_file]'. KEY= removes the setting.")
    ],
    json: AsJson = False,
    output: Out,
) -> None:
    """Show or change the settings that apply to every prompt of a conversation."""
    values: JsonObject = {}
    for change in changes:
        key, sign, value = change.partition("=")
        if not sign:
            raise UsageError(f"Invalid setting {change!r}: expected KEY=VALUE.", fix=f"moot chat settings {conversation} mode=edits")
        values[key] = parse_value(value, key)
    async with opened_at(conversation, output) as (engine, found):
        if values:
            found = await (await settings_change(engine, values, found.directory)).store(engine.store.conversations, found.id)
    current = found.own_settings.to_json()
    if json:
        output.json({"conversation": found.id, "settings": current})
        return
    for key in SETTINGS:
        output.line(f"{key}: {output.to_json(current[key])}" if key in current else f"{key}: not set")


async def _messages(engine: AnyEngine, found: Conversation, named: list[str], output: Output, *, restore: bool, json: bool) -> None:
    nodes = await engine.store.tree.nodes(found.id)
    chosen = [find_message(nodes, name) for name in named]
    changed = await engine.store.tree.delete(found.id, [node.id for node in chosen], restore=restore)
    numbers = ", ".join(str(node.no) for node in chosen)
    back = "" if restore else f"; restore it with: moot chat restore {found.id[:13]} --message {chosen[0].no}"
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
