"""Export of a conversation: as messages for any format, or as a recording with all exchanges of its runs."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import replace

import anyio.to_thread

from moot.errors import NotFound
from moot.types.canonical import dumps
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.exchange import Exchange
from moot.types.format import ExportedConversation, Fidelity, Format, Holding, Written
from moot.types.message import Message
from moot.types.part import Part
from moot.types.recording import Content, Recorder, Recording
from moot.types.run import Run
from moot.types.store import Holdings

__all__ = ["exported", "gathered", "holds", "recorded"]

_PAGE = 512
_CHILDREN = 200
_DEEPEST = 8
_HASH = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


async def exported(holdings: Holdings, conversation: Conversation, format: Format, *, branches: bool = True) -> Written:
    """Return the conversation as a file of that format, with all its branches if the format supports them.

    Raise UsageError if the format is read-only.
    """
    if isinstance(format, Recorder):
        recording = await recorded(holdings, conversation)
        return await anyio.to_thread.run_sync(format.record, recording)
    found = await gathered(holdings, conversation, format, branches=branches, counted=True)
    return await anyio.to_thread.run_sync(format.write, found)


async def gathered(
    holdings: Holdings, conversation: Conversation, format: Format, *, branches: bool = True, counted: bool = False
) -> ExportedConversation:
    """Return what the format can hold of the conversation, with attached files, other branches and sub-agents.

    With `counted`, also include unsupported branches and sub-agents without their files, so that the format can report them as lost.
    """
    branched, nested = holds(format, "branches"), holds(format, "sub-agents")
    whole = await _whole(holdings, conversation, branches=branches and branched, depth=_DEEPEST if nested else 0)
    if counted and branches and not branched:
        whole = replace(whole, others=await _others(holdings, conversation.id, whole.messages, files=False))
    if counted and not nested:
        found = await _children(holdings, conversation.id)
        inside = [await _whole(holdings, one, branches=branches, depth=_DEEPEST - 1, files=False) for one in found]
        whole = replace(whole, children=tuple(inside))
    return whole


def holds(format: Format, thing: str) -> bool:
    """Return whether the format's files can hold such a thing, named as in `Counts`."""
    return isinstance(format, Holding) and thing in format.holds


async def _whole(holdings: Holdings, conversation: Conversation, *, branches: bool, depth: int, files: bool = True) -> ExportedConversation:
    messages = await holdings.conversations.branch(conversation.id)
    others = await _others(holdings, conversation.id, messages, files=files) if branches else ()
    found = await _children(holdings, conversation.id) if depth else ()
    children = [await _whole(holdings, one, branches=branches, depth=depth - 1, files=files) for one in found]
    shown = tuple([await _with_files(holdings, message) if files else message for message in messages])
    return ExportedConversation(conversation, shown, others, tuple(children))


async def _children(holdings: Holdings, conversation: str) -> Sequence[Conversation]:
    """Return the conversations of sub-agents, oldest first."""
    page = await holdings.conversations.list(parent=conversation, archived=None, limit=_CHILDREN)
    return page.items[::-1]


async def _others(holdings: Holdings, conversation: str, shown: Iterable[Message], *, files: bool) -> tuple[Message, ...]:
    """Return the messages of the other branches. Children of a deleted message are attached to its closest parent that exists."""
    nodes = await holdings.tree.nodes(conversation)
    parents = {node.id: node.parent for node in nodes}
    existing = {node.id for node in nodes if not node.deleted}
    known = {message.id for message in shown}
    found: list[Message] = []
    for node in nodes:
        if node.id in known or node.deleted:
            continue
        parent = node.parent
        while parent is not None and parent not in existing:
            parent = parents.get(parent)
        message = await holdings.conversations.message(node.id)
        found.append(replace(await _with_files(holdings, message) if files else message, parent=parent))
    return tuple(found)


async def recorded(holdings: Holdings, conversation: Conversation) -> Recording:
    """Return the whole conversation with all its branches."""
    events: list[Event] = []
    while page := await holdings.log.read(conversation.id, after=events[-1].seq if events else 0, limit=_PAGE):
        events += page
    nodes = await holdings.tree.nodes(conversation.id)
    messages = tuple([await holdings.conversations.message(node.id) for node in nodes])
    runs = await _runs(holdings, conversation.id)
    exchanges = await _exchanges(holdings, events)
    contents = await _contents(holdings, events, exchanges, runs)
    frames = sum(event.kind == "raw" for event in events)
    counts = {"messages": len(messages), "runs": len(runs), "frames": frames, "contents": len(contents)}
    return Recording(
        conversation.id,
        conversation,
        messages,
        tuple(runs),
        tuple(exchanges),
        tuple(events),
        frozenset(node.id for node in nodes if node.deleted),
        contents,
        Fidelity({name: count for name, count in counts.items() if count}),
    )


async def _runs(holdings: Holdings, conversation: str) -> list[Run]:
    found: list[Run] = []
    while page := await holdings.records.runs(conversation=conversation, before=found[-1].no if found else None):
        found += page
    return found[::-1]


async def _exchanges(holdings: Holdings, events: Iterable[Event]) -> list[Exchange]:
    ids = dict.fromkeys(event.exchange for event in events if event.exchange is not None)
    found = [await holdings.records.exchange(id) for id in ids]
    return [exchange for exchange in found if exchange is not None]


async def _contents(holdings: Holdings, events: Iterable[Event], exchanges: Iterable[Exchange], runs: Iterable[Run]) -> dict[str, Content]:
    """Return all existing blobs that are referenced by hash."""
    texts = [dumps(exchange.request) for exchange in exchanges] + [dumps(run.settings) for run in runs]
    texts += [dumps([list(event.chunks), event.body]) for event in events if event.kind != "raw"]
    found: dict[str, Content] = {}
    for name in dict.fromkeys(match.decode() for text in texts for match in _HASH.findall(text)):
        try:
            blob = await holdings.blobs.about(name)
            found[name] = Content(await holdings.blobs.get(name), blob.media_type)
        except NotFound:
            continue  # 64 hex digits that are not the name of a blob
    return found


async def _with_files(holdings: Holdings, message: Message) -> Message:
    return replace(message, parts=tuple([await _resolved(holdings, part) for part in message.parts]))


async def _resolved(holdings: Holdings, part: Part) -> Part:
    url = part.get("url")
    if part.get("type") != "file" or not isinstance(url, str) or not url.startswith("blob:"):
        return part
    data = await holdings.blobs.get(url.removeprefix("blob:"))
    return {**part, "url": f"data:{part.get('mediaType', 'application/octet-stream')};base64,{b64encode(data).decode()}"}
