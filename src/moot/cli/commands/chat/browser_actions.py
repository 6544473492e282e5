"""Actions of the conversation browser. Deleting a conversation asks for confirmation."""

from __future__ import annotations

import base64
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from moot.cli.commands.chat.edit import EditOptions, edit_message, edit_whole, pick_message
from moot.cli.console.messages import print_messages, say_head, with_edits
from moot.cli.console.output import Output
from moot.cli.terminal.prompts.plain import ask_line, confirm
from moot.engine import Engine
from moot.guard.terminal import clean
from moot.types.conversation import Conversation

Act: TypeAlias = Callable[[Engine, Conversation, Output], Awaitable[object]]


async def edit_one(engine: Engine, conversation: Conversation, output: Output) -> None:
    """Edit one of the user's messages in their editor and answer it."""
    nodes = [node for node in await engine.store.tree.nodes(conversation.id) if node.role == "user"]
    node = await pick_message(nodes, output, title=f"Edit a message in {_name(conversation)}", enter="edit")
    if node is not None:
        await edit_message(engine, conversation, node, EditOptions(), output)


async def edit_all(engine: Engine, conversation: Conversation, output: Output) -> None:
    """Edit the whole conversation in the editor."""
    await edit_whole(engine, conversation, EditOptions(), output)


async def delete_messages(engine: Engine, conversation: Conversation, output: Output) -> None:
    """Delete or restore messages one by one until the user leaves."""
    at = ""
    while True:
        nodes = await engine.store.tree.nodes(conversation.id)
        title = f"Delete messages from {_name(conversation)}"
        node = await pick_message(nodes, output, title=title, enter="delete or restore", at=at, deleted=True)
        if node is None:
            return
        at = node.id
        await engine.store.tree.delete(conversation.id, [node.id], restore=node.deleted)
        output.say(f"moot: {'restored' if node.deleted else 'deleted'} message {node.no}")


async def delete(engine: Engine, conversation: Conversation, output: Output) -> None:
    """Delete a conversation after confirmation, or restore a deleted conversation."""
    if conversation.deleted_at is not None:
        await engine.store.conversations.delete(conversation.id, restore=True)
        output.say(f"moot: restored {_name(conversation)}")
    elif await confirm(f"Delete {_name(conversation)!r}? It can be restored.", output):
        await engine.store.conversations.delete(conversation.id)
        output.say(f"moot: deleted {_name(conversation)}; restore it with: moot chat restore {conversation.id[:13]}")
    else:
        output.say("moot: not deleted", "dim")


async def rename(engine: Engine, conversation: Conversation, output: Output) -> None:
    """Ask for a new title."""
    title = " ".join((await ask_line(f"New title for {_name(conversation)!r} (empty to keep it): ", output) or "").split())
    if title:
        renamed = await engine.store.conversations.rename(conversation.id, title, "user")
        output.say(f"moot: renamed to {renamed.title}")


async def archive(engine: Engine, conversation: Conversation, output: Output) -> None:
    """Archive a conversation, or unarchive it."""
    back = conversation.archived_at is not None
    await engine.store.conversations.update(conversation.id, archived=not back)
    output.say(f"moot: unarchived {_name(conversation)}" if back else f"moot: archived {_name(conversation)}")


async def fork(engine: Engine, conversation: Conversation, output: Output) -> None:
    """Copy the current branch to a new conversation."""
    made = await engine.store.tree.fork(conversation.id)
    output.say(f"moot: forked {_name(conversation)} as {made.id[:13]} ({made.title})")


async def copy_id(_: Engine, conversation: Conversation, output: Output) -> None:
    """Print the id, and copy it to the clipboard in terminals that support OSC 52."""
    if os.environ.get("TERM", "") not in ("dumb", ""):
        output.data(f"\x1b]52;c;{base64.b64encode(conversation.id.encode()).decode()}\x07")
    output.line(conversation.id)


async def show(engine: Engine, conversation: Conversation, output: Output) -> None:
    """Print the messages of the conversation."""
    say_head(conversation, output)
    branch = await engine.store.conversations.branch(conversation.id)
    print_messages(await with_edits(engine.store, branch), output)


async def use_as_previous(engine: Engine, conversation: Conversation, output: Output) -> None:
    """Make `moot run --reply` continue this conversation."""
    await engine.store.conversations.update(conversation.id, touch=True)
    output.say(f"moot: 'moot run --reply' will continue {_name(conversation)}")


ACTS: Mapping[str, Act] = {
    "s": show,
    "e": edit_one,
    "w": edit_all,
    "m": delete_messages,
    "r": rename,
    "f": fork,
    "a": archive,
    "d": delete,
    "c": copy_id,
    "p": use_as_previous,
}
"""Functions for the keys in `browser.KEYS`."""


def _name(conversation: Conversation) -> str:
    return " ".join(clean(conversation.title).split()) or conversation.id
