"""The commands `moot chat show` and `tree`."""

from __future__ import annotations

import shutil
from typing import Annotated

from moot.cli.arguments.parameters import Parameter
from moot.cli.chat.around import AROUND, show_around
from moot.cli.chat.drawing import tree_lines
from moot.cli.chat.facts import live_statuses
from moot.cli.chat.raw import show_raw
from moot.cli.edited import with_edits
from moot.cli.messages import print_call, print_messages, say_head
from moot.cli.opening import opened_at
from moot.cli.options import AsJson, Out, Which
from moot.cli.output import Output
from moot.convert.given import conversation_json, message_json, node_json
from moot.guard.terminal import clean
from moot.types.canonical import Json


async def show(
    conversation: Which,
    /,
    *,
    limit: Annotated[int | None, Parameter(minimum=1, help="Number of most recent messages to show.")] = None,
    cursor: Annotated[str | None, Parameter(help="Start of an older page: the previous page's next_cursor.")] = None,
    at: Annotated[
        str | None, Parameter(metavar="MESSAGE", help="Message to show with those around it: its number in 'moot chat tree', or its id.")
    ] = None,
    call: Annotated[int | None, Parameter(minimum=1, help="Number of a tool call to show in full.")] = None,
    raw: Annotated[
        bool, Parameter(name="--raw", help="Show the vendor's raw data: frames with timestamps, or only the bytes in a pipe.")
    ] = False,
    first: Annotated[
        bool, Parameter(name="--first", help="Show the first translation of answers that newer converters have translated again.")
    ] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print the messages of a conversation, oldest first."""
    if raw:
        await _raw(conversation, limit, cursor, output, json=json)
        return
    if at is not None:
        await show_around(conversation, at, limit or AROUND, output, json=json)
        return
    async with opened_at(conversation, output) as (engine, found):
        counted = call is not None or (output.stdout_terminal and not json)  # calls are numbered from the first message on
        branch = await engine.store.conversations.branch(found.id, head=cursor, limit=None if counted else limit)
        newer = await engine.store.translations.converters(found.id)
        if first and newer:
            branch = await engine.store.translations.first(branch)
        branch = await with_edits(engine.store, branch)
        live = await live_statuses(engine.store)
    if call is not None:
        print_call(branch, call, output, json=json)
        return
    messages = branch if limit is None else branch[-limit:]
    older = messages[0].parent if messages and limit is not None and len(messages) == limit else None
    if json:
        data = list[Json]([message_json(message) for message in messages])
        output.json({"data": data, "next_cursor": older, "conversation": conversation_json(found, live)})
        return
    say_head(found, output)
    print_messages(messages, output, before=branch[: len(branch) - len(messages)])
    if newer and not first:
        output.say(f"moot: translated again by {', '.join(sorted(set(newer.values())))}; show the first translation with --first", "dim")
    if older is not None:
        output.say(f"moot: older messages: --limit {limit} --cursor {older}", "dim")


async def _raw(conversation: str, limit: int | None, cursor: str | None, output: Output, *, json: bool) -> None:
    async with opened_at(conversation, output) as (engine, found):
        some = limit is not None or cursor is not None
        messages = await engine.store.conversations.branch(found.id, head=cursor, limit=limit) if some else None
        await show_raw(engine.store, found.id, messages, output, json=json)


async def tree(
    conversation: Which,
    /,
    *,
    all_: Annotated[bool, Parameter(name="--all", help="Include deleted messages.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print all messages of a conversation as a tree."""
    async with opened_at(conversation, output) as (engine, found):
        nodes = await engine.store.tree.nodes(found.id)
    if json:
        kept = [node for node in nodes if all_ or not node.deleted]
        output.json({"data": [node_json(node) for node in kept], "conversation": found.id, "head": found.head})
        return
    width = shutil.get_terminal_size().columns if output.stdout_terminal else None
    say_head(found, output)
    for line in tree_lines(nodes, deleted=all_):
        shown = clean(line)[:width]
        output.data(f"{output.styled(shown, 'bold') if line.startswith('*') else shown}\n")
