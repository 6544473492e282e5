"""What the letters of the list do with the selected conversation. Each says what it did; what hides something asks first."""

from __future__ import annotations

import base64
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from moot.cli.asking import ask_line, confirm
from moot.cli.edited import with_edits
from moot.cli.messages import print_messages, say_head
from moot.cli.output import Output
from moot.cli.revising.editing import edit_whole
from moot.cli.revising.one import EditOptions, edit_message, pick_message
from moot.engine import Engine
from moot.guard.terminal import clean
from moot.types.conversation import Conversation

Act: TypeAlias = Callable[[Engine, Conversation, Output], Awaitable[object]]


async def edit_one(engine: Engine, conversation: Conversation, output: Output) -> None:
    """One of the person's own messages in the editor; the changed one is answered."""
    nodes = [node for node in await engine.store.tree.nodes(conversation.id) if node.role == "user"]
    node = await pick_message(nodes, output, title=f"Edit a message of {_name(conversation)}", enter="edit")
    if node is not None:
        await edit_message(engine, conversation, node, EditOptions(), output)


async def edit_all(engine: Engine, conversation: Conversation, output: Output) -> None:
    """The whole conversation in the editor."""
    await edit_whole(engine, conversation, EditOptions(), output)


async def delete_messages(engine: Engine, conversation: Conversation, output: Output) -> None:
    """One message after the other, until the person leaves; a deleted one comes back the same way."""
    at = ""
    while True:
        nodes = await engine.store.tree.nodes(conversation.id)
        title = f"Delete messages of {_name(conversation)}"
        node = await pick_message(nodes, output, title=title, enter="delete or bring back", at=at, deleted=True)
        if node is None:
            return
        at = node.id
        await engine.store.tree.delete(conversation.id, [node.id], restore=node.deleted)
        output.say(f"moot: message {node.no} {'is back' if node.deleted else 'is deleted'}")


async def delete(engine: Engine, conversation: Conversation, output: Output) -> None:
    """Deletes it after asking, or brings a deleted one back."""
    if conversation.deleted_at is not None:
        await engine.store.conversations.delete(conversation.id, restore=True)
        output.say(f"moot: restored {_name(conversation)}")
    elif await confirm(f"Delete {_name(conversation)!r}? It can be restored.", output):
        await engine.store.conversations.delete(conversation.id)
        output.say(f"moot: deleted {_name(conversation)}; moot chat restore {conversation.id[:13]} brings it back")
    else:
        output.say("moot: nothing was deleted", "dim")


async def rename(engine: Engine, conversation: Conversation, output: Output) -> None:
    """Asks for a title."""
    title = " ".join((await ask_line(f"New title for {_name(conversation)!r} (nothing = as it is): ", output) or "").split())
    if title:
        renamed = await engine.store.conversations.rename(conversation.id, title, "user")
        output.say(f"moot: it is called {renamed.title} now")


async def archive(engine: Engine, conversation: Conversation, output: Output) -> None:
    """Out of the list, or back into it."""
    back = conversation.archived_at is not None
    await engine.store.conversations.update(conversation.id, archived=not back)
    output.say(f"moot: {_name(conversation)} is in the list again" if back else f"moot: archived {_name(conversation)}")


async def fork(engine: Engine, conversation: Conversation, output: Output) -> None:
    """A copy of what is shown of it."""
    made = await engine.store.tree.fork(conversation.id)
    output.say(f"moot: forked {_name(conversation)} as {made.id[:13]} ({made.title})")


async def copy_id(_: Engine, conversation: Conversation, output: Output) -> None:
    """Prints its id, and hands it to terminals that take text for the clipboard (OSC 52)."""
    if os.environ.get("TERM", "") not in ("dumb", ""):
        output.data(f"\x1b]52;c;{base64.b64encode(conversation.id.encode()).decode()}\x07")
    output.line(conversation.id)


async def show(engine: Engine, conversation: Conversation, output: Output) -> None:
    """Its messages, into the scrollback."""
    say_head(conversation, output)
    branch = await engine.store.conversations.branch(conversation.id)
    print_messages(await with_edits(engine.store, branch), output)


async def use_as_previous(engine: Engine, conversation: Conversation, output: Output) -> None:
    """Makes it the one that `moot run --reply` carries on."""
    await engine.store.conversations.update(conversation.id, touch=True)
    output.say(f"moot: moot run --reply goes on with {_name(conversation)} now")


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
"""By the letters of `rows.KEYS`."""


def _name(conversation: Conversation) -> str:
    return " ".join(clean(conversation.title).split()) or conversation.id
