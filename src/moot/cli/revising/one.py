"""Edit one message. The change becomes a new branch, and a changed prompt is answered again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from moot.cli.editor import edit_text, save_text
from moot.cli.following import Follower
from moot.cli.options import RunFlags, ShowFlags, run_settings
from moot.cli.output import Output
from moot.cli.picking.items import Column, Item
from moot.cli.picking.picking import pick
from moot.cli.references import copied
from moot.cli.revising.blocks import entry_of, parts_of
from moot.cli.revising.document import Entry, Text, parse_blocks, render_blocks
from moot.cli.run import agent_model, make_show
from moot.cli.times import moment
from moot.cli.weights import provide_weights
from moot.engine import Engine
from moot.errors import UsageError
from moot.types.conversation import Conversation
from moot.types.message import Message
from moot.types.part import Part
from moot.types.run import Prompt
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
    """Let the user pick a message of the shown branch, newest first. Return None if they leave."""
    shown = [node for node in reversed(nodes) if node.shown and (deleted or not node.deleted)]
    items = [
        Item(node.id, (str(node.no), moment(node.at), "deleted" if node.deleted else node.role, node.line or "(empty)")) for node in shown
    ]
    picked = await pick(items, title=title, columns=_COLUMNS, enter=enter, at=at, empty="No messages", output=output)
    return next((node for node in nodes if picked is not None and node.id == picked.item.key), None)


async def edit_message(
    engine: Engine, conversation: Conversation, node: Node, options: EditOptions, output: Output, *, text: str = ""
) -> int:
    """Edit the message, or `text`, an earlier attempt. Return the exit code."""
    message = await engine.store.conversations.message(node.id)
    entry = entry_of(message, node.no)
    single = sum(isinstance(block, Text) for block in entry.blocks) <= 1
    again = f"moot chat edit {conversation.id} {node.no} --from {{path}}"
    edited = await edit_text(text or _text(entry, single=single), output=output, again=again)
    if edited is None and not text:
        output.say("moot: nothing was changed", "dim")
        return 0
    edited = text if edited is None else edited
    try:
        parts = _parts(entry, message, edited, single=single)
    except UsageError as error:
        where = await save_text(edited)
        raise UsageError(f"{error.message} The text is saved in {where}", fix=f"To continue, run {again.format(path=where)}") from error
    if message.role == "user" and not options.no_answer:
        return await answer(engine, conversation, Prompt(parts, edits=message.id), options, output)
    await engine.store.tree.edit(message.id, parts)
    output.say(f"moot: changed message {node.no}; moot chat tree {conversation.id[:13]} shows all branches")
    return 0


async def answer(engine: Engine, conversation: Conversation, prompt: Prompt, options: EditOptions, output: Output) -> int:
    """Generate and show the answer to an edited message. Return the exit code."""
    flags = options.flags
    show = make_show(options.shown, output)
    model = flags.model or (conversation.next_model if not flags.agent else "")
    model = model or agent_model(engine.settings, flags.agent or conversation.agent)
    await provide_weights(engine.providers, model, output, consent=flags.yes_download)
    settings = run_settings(flags, None, attended=output.attended)
    prompt = replace(prompt, conversation=conversation.id, directory=conversation.directory, settings=settings)
    submitted = await engine.runs.submit(replace(prompt, agent=flags.agent, model=flags.model, mode=flags.mode))
    if submitted.conversation.id != conversation.id:
        output.say(f"moot: {copied(conversation, submitted.conversation)}", "dim")
    return await Follower(engine, output, show).follow(submitted.run, submitted.conversation, submitted.seq)


def _text(entry: Entry, *, single: bool) -> str:
    if single:
        return next((block.text for block in entry.blocks if isinstance(block, Text)), "")
    return "\n".join(render_blocks(entry.blocks))


def _parts(entry: Entry, message: Message, text: str, *, single: bool) -> tuple[Part, ...]:
    if not text.strip():
        raise UsageError(f"Message {entry.number} is empty.")
    if not single:
        return parts_of(Entry(entry.role, parse_blocks(text.removesuffix("\n").split("\n"), 1), entry.number, entry.id, 1), message)
    texts = [block for block in entry.blocks if isinstance(block, Text)]
    blocks = [Text(text) if isinstance(block, Text) else block for block in entry.blocks] if texts else [*entry.blocks, Text(text)]
    return parts_of(Entry(entry.role, tuple(blocks), entry.number, entry.id), message)
