"""The commands `moot chat show` and `tree`."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Annotated

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.messages import for_display, print_call, print_messages, say_head, with_edits
from moot.cli.console.output import Output
from moot.cli.context.engine import connected_at
from moot.cli.context.output import Out
from moot.cli.context.references import find_message, live_statuses
from moot.cli.options import Which
from moot.cli.remote import AnyEngine
from moot.convert.files.edits import changed_files
from moot.convert.serialization import conversation_json, direction, message_json, node_json, raw_json
from moot.engine import Engine
from moot.guard.terminal import clean, visible
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.exchange import Exchange
from moot.types.message import Message
from moot.types.store import OwnerStore
from moot.types.tree import Node


def tree_lines(nodes: Sequence[Node], *, deleted: bool = False) -> Iterator[str]:
    """Yield a line for each message: `*` if it is on the current branch, its number, role and first line.
    The text is untrusted and not cleaned.

    Unless `deleted` is True, deleted messages are skipped and their children are attached to the parent of the deleted message.
    """
    kept, behind = _kept(nodes, deleted)
    width = len(str(max(kept, default=0)))
    todo = [(no, connector, below) for no, connector, below in _forks(behind.get(0, ()), "")]
    while todo:
        no, connector, below = todo.pop()
        node = kept[no]
        marks = [word for word, holds in ((node.status, node.status != "finished"), ("deleted", node.deleted)) if holds]
        mark = f" ({', '.join(marks)})" if marks else ""
        yield f"{'*' if node.shown else ' '} {connector}" + f"{no:>{width}} {node.role}{mark}: {node.line}".rstrip()
        todo += _forks(behind.get(no, ()), below)


def _forks(numbers: Sequence[int], below: str) -> list[tuple[int, str, str]]:
    """Return the children of a message, last one first, each with its number,
    the prefix of its line, and the prefix of the lines below it.
    """
    if len(numbers) == 1:
        return [(numbers[0], below, below)]
    last = len(numbers) - 1
    return [
        (no, f"{below}{'`-' if at == last else '|-'}", f"{below}{'  ' if at == last else '| '}")
        for at, no in reversed(list(enumerate(numbers)))
    ]


def _kept(nodes: Sequence[Node], deleted: bool) -> tuple[dict[int, Node], dict[int, list[int]]]:
    """Return the messages to draw, keyed by number, and the children of each. 0 is the root."""
    numbers: dict[str | None, int] = {None: 0}
    kept: dict[int, Node] = {}
    behind: dict[int, list[int]] = {}
    for node in nodes:
        at = numbers.get(node.parent, 0)
        if node.deleted and not deleted:
            numbers[node.id] = at
            continue
        numbers[node.id] = node.no
        kept[node.no] = node
        behind.setdefault(at, []).append(node.no)
    return kept, behind


_AROUND = 7
"""Default number of messages to print, with the requested message in the middle."""


async def show_around(engine: AnyEngine, found: Conversation, at: str, limit: int, output: Output, *, json: bool) -> None:
    """Print a message and the messages around it. Raise NotFound if it does not exist."""
    store = engine.store
    nodes = await store.tree.nodes(found.id)
    node = find_message(nodes, at)
    branch = await store.conversations.branch(found.id, head=None if node.shown else _tip(nodes, node).id)
    branch = await (with_edits if json else for_display)(store, branch)
    place = next((number for number, message in enumerate(branch) if message.id == node.id), len(branch) - 1)
    start = max(0, min(place - limit // 2, len(branch) - limit))
    if json:
        data = list[Json]([message_json(message) for message in branch[start : start + limit]])
        about = conversation_json(found, await live_statuses(engine))
        output.json({"data": data, "at": node.id, "shown": node.shown, "conversation": about})
        return
    say_head(found, output)
    if not node.shown:
        output.say(f"moot: this message is on another branch; switch to it with: moot chat switch {found.id} {node.no}", "dim")
    stop = min(start + limit, len(branch))
    if start:
        output.say(f"… {start} older", "dim")
    print_messages(branch[start:place], output, before=branch[:start])
    output.say("▶ here", "green")
    print_messages(branch[place : place + 1], output, before=branch[:place])
    print_messages(branch[place + 1 : stop], output, before=branch[: place + 1])
    if stop < len(branch):
        output.say(f"… {len(branch) - stop} newer", "dim")


def _tip(nodes: Sequence[Node], node: Node) -> Node:
    """Return the last message of the newest branch through the node."""
    newest = {child.parent: child for child in nodes if child.parent is not None and not child.deleted}
    while node.id in newest:
        node = newest[node.id]
    return node


_PAGE = 512


async def show_raw(store: OwnerStore, conversation: str, messages: Sequence[Message] | None, output: Output, *, json: bool) -> None:
    """Print the raw data of these messages, or of all messages. A terminal shows it with headings; a pipe gets only the received bytes."""
    of_runs = None if messages is None else {message.run for message in messages if message.run is not None}
    places = None if messages is None else {message.first_seq for message in messages if message.run is None}
    shown = _Json(output, conversation) if json else _Screen(output, store) if output.stdout_terminal else _Pipe()
    after = 0
    while page := await store.log.read(conversation, after=after, limit=_PAGE):
        for event in page:
            wanted = of_runs is None or event.run in of_runs or (places is not None and event.run is None and event.seq in places)
            if event.raw is not None and wanted:
                await shown.frame(event)
        after = page[-1].seq
    await shown.end()


class _Pipe:
    """Writer of the bytes received from the vendor, without the bytes sent, so that other programs can parse them."""

    async def frame(self, event: Event) -> None:
        if direction(event) == "in":
            assert event.raw is not None
            sys.stdout.buffer.write(event.raw)

    async def end(self) -> None:
        sys.stdout.buffer.flush()


class _Json:
    """Writer of one JSON document. It writes while the raw data is being read, because that may be larger than memory."""

    def __init__(self, output: Output, conversation: str) -> None:
        self._output = output
        self._conversation = conversation
        self._started = False

    async def frame(self, event: Event) -> None:
        assert event.raw is not None
        value: JsonObject = {"seq": event.seq, "at": event.at, "run": event.run, "kind": event.kind, "exchange": event.exchange}
        await self._output.stream(self._lead() + self._output.to_json({**value, "dir": direction(event), **raw_json(event.raw)}))

    async def end(self) -> None:
        started = self._started
        await self._output.stream(f'{"" if started else self._lead()}],"conversation":{self._output.to_json(self._conversation)}}}\n')

    def _lead(self) -> str:
        lead, self._started = "," if self._started else '{"data":[', True
        return lead


class _Screen:
    """Writer for terminals, with each frame below a heading. Control characters are made visible."""

    def __init__(self, output: Output, store: OwnerStore) -> None:
        self._output = output
        self._store = store
        self._exchange: str | None = None

    async def frame(self, event: Event) -> None:
        if event.exchange != self._exchange:
            self._exchange = event.exchange
            exchange = await self._store.records.exchange(event.exchange) if event.exchange is not None else None
            self._output.data(self._output.styled(f"── {_title(event, exchange)}", "bold") + "\n")
        assert event.raw is not None
        arrow = "→" if direction(event) == "out" else "←"
        seconds, micros = divmod(event.at, 1_000_000)
        clock = f"{time.strftime('%H:%M:%S', time.localtime(seconds))}.{micros // 1000:03d}"
        lines = visible(event.raw.decode("utf-8", "backslashreplace")).rstrip("\n").split("\n")
        head = self._output.styled(f"{event.seq:>6} {clock} {arrow}", "dim")
        self._output.data(f"{head}\n" + "".join(f"       {line}\n" for line in lines))

    async def end(self) -> None:
        if self._exchange is None:
            self._output.say("moot: no raw data", "dim")


def _title(event: Event, exchange: Exchange | None) -> str:
    if exchange is None:
        return visible(event.kind)
    facts = [exchange.purpose, exchange.id.rpartition(":")[2], exchange.converter, f"{exchange.model}@{exchange.provider}".strip("@")]
    return visible(" · ".join(fact for fact in [*facts, exchange.ended or "open"] if fact))


async def show(
    conversation: Which,
    /,
    *,
    limit: Annotated[int | None, Parameter(minimum=1, help="Number of most recent messages to show.")] = None,
    cursor: Annotated[str | None, Parameter(help="Show older messages, starting at the previous page's 'next_cursor'.")] = None,
    at: Annotated[
        str | None,
        Parameter(metavar="MESSAGE", help="Message to show, along with the messages around it: its number in 'moot chat tree', or its id."),
    ] = None,
    call: Annotated[
        int | None, Parameter(minimum=1, help="Number of the tool call to show in full, as printed with the conversation.")
    ] = None,
    raw: Annotated[
        bool, Parameter(help="Show the raw data exchanged with the model provider or agent. In a pipe, print only the received bytes.")
    ] = False,
    first: Annotated[
        bool, Parameter(help="Show answers as originally converted from the raw data, not as converted again by newer versions of moot.")
    ] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print the messages of a conversation, oldest first."""
    async with connected_at(conversation, output) as (engine, found):
        if found.deleted_at is not None:
            output.say(f"moot: this conversation is deleted; restore it with: moot chat restore {found.id[:13]}", "yellow")
        if raw:
            some = limit is not None or cursor is not None
            messages = await engine.store.conversations.branch(found.id, head=cursor, limit=limit) if some else None
            await show_raw(engine.store, found.id, messages, output, json=json)
            return
        if at is not None:
            await show_around(engine, found, at, limit or _AROUND, output, json=json)
            return
        counted = call is not None or (output.stdout_terminal and not json)  # calls are numbered from the first message on
        branch = await engine.store.conversations.branch(found.id, head=cursor, limit=None if counted else limit)
        branch, newer = await _translated(engine, found, branch, first=first)
        branch = await (with_edits if json else for_display)(engine.store, branch)
        live = await live_statuses(engine)
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
    _say_changed_files(messages, output)
    if newer and not first:
        output.say(
            f"moot: answers were converted again by {', '.join(sorted(set(newer.values())))}; show the first conversion with --first",
            "dim",
        )
    if older is not None:
        output.say(f"moot: older messages: --limit {limit} --cursor {older}", "dim")


async def _translated(
    engine: AnyEngine, found: Conversation, branch: list[Message], *, first: bool
) -> tuple[list[Message], dict[str, str]]:
    """Return the messages, in their first translation if `first` is True, and the converters of newer translations."""
    local = isinstance(engine, Engine)
    newer = await (engine.store.translations.converters(found.id) if local else engine.converters(found.id))
    if first and newer:
        branch = await (engine.store.translations.first(branch) if local else engine.first(found.id, branch))
    return branch, newer


def _say_changed_files(messages: Sequence[Message], output: Output) -> None:
    if changed := changed_files(part for message in messages for part in message.parts):
        output.say(visible(f"moot: files changed: {', '.join(changed)}"), "dim")


async def tree(
    conversation: Which,
    /,
    *,
    all_: Annotated[bool, Parameter(help="Include deleted messages.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print all messages of a conversation as a tree."""
    async with connected_at(conversation, output) as (engine, found):
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
