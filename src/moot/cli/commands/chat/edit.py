"""`moot chat edit`: edit a message or a whole conversation in the user's editor. The original is kept on another branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, cast, get_args

import anyio.to_thread

from moot.cli.arguments.signatures import Parameter
from moot.cli.commands.chat.document import Entry, Fixed, Text, entry_of, new_parts, parse, parse_blocks, parts_of, render, render_blocks
from moot.cli.console.format import moment
from moot.cli.console.output import Output
from moot.cli.context.configuration import here
from moot.cli.context.engine import opened_at
from moot.cli.context.output import Out
from moot.cli.context.references import copied, find_message, in_folder
from moot.cli.follow import Follower
from moot.cli.options import NO_FLAGS, NO_SHOW, RunFlags, ShowFlags, Which, run_settings
from moot.cli.run import make_show, prepare_models, with_references
from moot.cli.terminal.prompts.editor import edit_text, save_text
from moot.cli.terminal.prompts.items import Column, Item
from moot.cli.terminal.prompts.pick import pick
from moot.convert.files.attachments import typed_parts
from moot.engine import Engine
from moot.errors import UsageError
from moot.features.settings import allow_folders, chosen_folders
from moot.types.conversation import Conversation
from moot.types.ids import new_id
from moot.types.message import Message, Part, Role
from moot.types.run import Prompt
from moot.types.store import Store
from moot.types.tree import Node

_COLUMNS = (Column("NO", 4, right=True), Column("WHEN", 16, rank=2), Column("ROLE", 9, rank=1), Column("MESSAGE", 8, grows=True))


@dataclass(frozen=True, slots=True)
class EditOptions:
    """Options for answering an edited message."""

    flags: RunFlags = field(default_factory=RunFlags)
    shown: ShowFlags = field(default_factory=ShowFlags)
    no_answer: bool = False


async def pick_message(
    nodes: Sequence[Node], output: Output, *, title: str, enter: str, at: str = "", deleted: bool = False
) -> Node | None:
    """Let the user pick a message from the current branch, newest first. Return None if the user cancels."""
    shown = [node for node in reversed(nodes) if node.shown and (deleted or not node.deleted)]
    items = [
        Item(node.id, (str(node.no), moment(node.at), "deleted" if node.deleted else node.role, node.line or "(empty)")) for node in shown
    ]
    picked = await pick(items, title=title, columns=_COLUMNS, enter=enter, at=at, empty="No messages", output=output)
    return next((node for node in nodes if picked is not None and node.id == picked.item.key), None)


async def edit_message(
    engine: Engine, conversation: Conversation, node: Node, options: EditOptions, output: Output, *, text: str = ""
) -> int:
    """Edit a message. If `text` is given, open this text in the editor instead of the message's own. Return the exit code."""
    message = await engine.store.conversations.message(node.id)
    answered = message.role == "user" and not options.no_answer
    if answered:  # the content that the text refers to is attached again
        message = replace(message, parts=typed_parts(message.parts))
    entry = entry_of(message, node.no)
    single = sum(isinstance(block, Text) for block in entry.blocks) <= 1
    again = f"moot chat edit {conversation.id} {node.no} --from {{path}}"
    shown = "\n".join(render_blocks(entry.blocks))
    if single:
        shown = next((block.text for block in entry.blocks if isinstance(block, Text)), "")
    edited = await edit_text(text or shown, output=output, again=again)
    if edited is None and not text:
        output.say("moot: nothing was changed", "dim")
        return 0
    edited = text if edited is None else edited
    try:
        parts = _parts(entry, message, edited, single=single)
    except UsageError as error:
        where = await save_text(edited)
        raise UsageError(f"{error.message} The text is saved in {where}", fix=f"To continue, run {again.format(path=where)}") from error
    if answered:
        return await answer(engine, conversation, Prompt(parts, edits=message.id), options, output)
    await engine.store.tree.edit(message.id, parts)
    output.say(f"moot: changed message {node.no}; moot chat tree {conversation.id[:13]} shows all branches")
    return 0


async def answer(engine: Engine, conversation: Conversation, prompt: Prompt, options: EditOptions, output: Output) -> int:
    """Generate and show the answer to an edited message. Return the exit code."""
    flags = options.flags
    if flags.worktree is not None:
        raise UsageError("--worktree is only for new conversations. A conversation keeps its folder.", fix="moot run --worktree PROMPT")
    if allowed := chosen_folders(map(str, flags.allow or ()), str(here())):
        conversation = await allow_folders(engine, conversation.id, allowed, str(here()))
    show = make_show(options.shown, output)
    settings = run_settings(flags, None, attended=output.attended)
    prompt = replace(prompt, conversation=conversation.id, directory=conversation.directory or str(here()), settings=settings)
    prompt = replace(prompt, agent=flags.agent, model=flags.model, mode=flags.mode)
    if prompt.parts:
        prompt = await with_references(engine, prompt, conversation, output)
    await prepare_models(engine, flags, conversation, output)
    submitted = await engine.runs.submit(prompt)
    if submitted.conversation.id != conversation.id:
        output.say(f"moot: {copied(conversation, submitted.conversation)}", "dim")
    if not conversation.directory:
        output.say(f"moot: {in_folder(submitted.conversation)}", "dim")
    return await Follower(engine, output, show).follow(submitted.run, submitted.conversation, submitted.seq)


def _parts(entry: Entry, message: Message, text: str, *, single: bool) -> tuple[Part, ...]:
    if not text.strip():
        raise UsageError(f"Message {entry.number} is empty.")
    if not single:
        return parts_of(Entry(entry.role, parse_blocks(text.removesuffix("\n").split("\n"), 1), entry.number, entry.id, 1), message)
    texts = [block for block in entry.blocks if isinstance(block, Text)]
    blocks = [Text(text) if isinstance(block, Text) else block for block in entry.blocks] if texts else [*entry.blocks, Text(text)]
    return parts_of(Entry(entry.role, tuple(blocks), entry.number, entry.id), message)


_ROLES = get_args(Role)
_KEPT = ("agent", "model", "provider")
"""Metadata that is kept when a message is changed, because it identifies the author.
Token usage, for example, belongs only to the original.
"""


@dataclass(frozen=True, slots=True)
class Revision:
    """The changes that a user made to a conversation's text."""

    parent: str | None
    """The last unchanged message; None if all are changed."""
    messages: tuple[Message, ...]
    """The messages after `parent` on the new branch; empty if there are none."""


def render_conversation(messages: Sequence[Message], numbers: Mapping[str, int]) -> str:
    """Return the current branch as text to edit. `numbers` maps message ids to message numbers."""
    return render([entry_of(message, numbers[message.id]) for message in messages])


def revision(messages: Sequence[Message], numbers: Mapping[str, int], text: str) -> Revision | None:
    """Return the changes in an edited text, or None if there are none. If the text is invalid, raise UsageError with the line number."""
    before = [entry_of(message, numbers[message.id]) for message in messages]
    known = {entry.number: (entry, message) for entry, message in zip(before, messages, strict=True)}
    after = _identify(known, parse(text))
    after = [one for one in after if one in before or any(isinstance(block, Fixed) or block.text.strip() for block in one.blocks)]
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    if same == len(before) == len(after):
        return None
    if not after:
        raise UsageError("The edited conversation is empty.", fix="To delete the conversation, run moot chat delete.")
    return Revision(messages[same - 1].id if same else None, tuple(_message(entry, known) for entry in after[same:]))


async def apply(store: Store, conversation: Conversation, revision: Revision) -> str:
    """Store the changes as a new branch, which is then displayed. Return the id of its last message."""
    if not revision.messages:
        assert revision.parent is not None  # otherwise the conversation would be empty
        await store.tree.switch(conversation.id, revision.parent, exactly=True)
        return revision.parent
    return (await store.tree.graft(conversation.id, revision.parent, revision.messages))[-1].id


def _identify(known: Mapping[int, tuple[Entry, Message]], entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries with the roles and ids of messages taken from `known`, because the user may have changed the markers."""
    seen: dict[int, int] = {}
    found: list[Entry] = []
    for entry in entries:
        if not entry.number:
            found.append(entry)
            continue
        if entry.number not in known:
            raise UsageError(f"Line {entry.line}: message {entry.number} does not exist.", fix="Write a new message without a number.")
        if entry.number in seen:
            raise UsageError(f"Line {entry.line}: message {entry.number} already appears on line {seen[entry.number]}.")
        before = known[entry.number][0]
        if entry.role in _ROLES and entry.role != before.role:
            raise UsageError(
                f"Line {entry.line}: the role of message {entry.number} is {before.role} and cannot be changed.",
                fix="Write a new message without a number.",
            )
        seen[entry.number] = entry.line
        found.append(replace(entry, role=before.role, id=before.id))
    return found


def _message(entry: Entry, known: Mapping[int, tuple[Entry, Message]]) -> Message:
    if not entry.number:
        return Message(new_id(), cast("Role", entry.role), new_parts(entry))  # a marker without a number has a valid role
    before, message = known[entry.number]
    parts = parts_of(entry, message)
    if entry == before:
        return replace(message, id=new_id(), client_id=None)
    metadata = {key: message.metadata[key] for key in _KEPT if key in message.metadata}
    return replace(message, id=new_id(), client_id=None, parts=parts, metadata=metadata)


async def edit(
    conversation: Which,
    message: Annotated[
        str | None, Parameter(help="Message: its number in 'moot chat tree', or its id. By default, choose one from a list.")
    ] = None,
    /,
    *,
    everything: Annotated[bool, Parameter(name="--all", help="Edit the whole conversation as one document.")] = False,
    no_answer: Annotated[bool, Parameter(help="Store the change without generating an answer.")] = False,
    source: Annotated[
        Path | None, Parameter(name="--from", help="Use the text of this file instead of opening an editor.", kind="file")
    ] = None,
    flags: RunFlags = NO_FLAGS,
    shown: ShowFlags = NO_SHOW,
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
        node = await pick_message(own, output, title=f"Edit a message in {found.title or found.id}", enter="edit")
        return 0 if node is None else await edit_message(engine, found, node, options, output, text=text)


async def edit_whole(engine: Engine, conversation: Conversation, options: EditOptions, output: Output, *, text: str = "") -> int:
    """Edit the current branch as one text.
    If `text` is given, open this text in the editor instead of the branch's own. Return the exit code.
    """
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
