"""What a file holds, brought in: once, whatever is tried again; under ids of its own; without rights that the file gives itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import anyio.to_thread

from moot.convert.recorded import completed
from moot.errors import NotFound, UsageError
from moot.plugins import FORMATS
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.exchange import Exchange
from moot.types.format import Format, ImportedMessage, WholeConversation
from moot.types.ids import new_id
from moot.types.message import Message
from moot.types.recording import Recorder, Recording
from moot.types.run import Run
from moot.types.store import Holdings

__all__ = ["Imported", "format_of", "imported"]

HEAD = 64 << 10
"""Bytes by which a format knows its files."""

Outcome: TypeAlias = Literal["added", "known", "would be added"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of one conversation of a file."""

    outcome: Outcome
    conversation: Conversation
    """The stored one; of a dry run as it would be."""
    recording: Recording
    grown: int = 0
    """Events that the source has more than what an earlier import took; they are not added."""


def format_of(path: Path, name: str = "") -> Format:
    """The format of that name, else the one that knows the file. Raises UsageError."""
    if name:
        if name not in FORMATS:
            raise UsageError(f"{FORMATS.unknown(name)}; known: {', '.join(FORMATS.names())}")
        return FORMATS.make(name)
    try:
        head = b"" if path.is_dir() else _head(path)
    except OSError as error:
        raise UsageError(f"can't read {str(path)!r}: {error.strerror}") from error
    formats: list[Format] = [FORMATS.make(known) for known in FORMATS.names()]
    found = [format for format in formats if format.sniff(path, head)]
    if not found:
        raise UsageError(f"no format knows {str(path)!r}; known: {', '.join(FORMATS.names())}", fix="name one with -f")
    if len(found) > 1:
        raise UsageError(f"{str(path)!r} could be {' or '.join(format.name for format in found)}", fix="name one with -f")
    return found[0]


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD)


async def imported(
    holdings: Holdings, format: Format, path: Path, *, agent_type: str = "", directory: str = "", dry_run: bool = False
) -> AsyncGenerator[Imported, None]:
    """Each conversation of the file, once it is stored or found to be there already. Raises UsageError, StoreError.

    `directory`: where the conversation goes on from here; where the source's stood stays in its `origin`.
    """
    recordings = _recordings(format, path, agent_type)
    while (recording := await _next(recordings)) is not None:
        yield await _one(holdings, format, path, recording, directory, dry_run=dry_run)


def _recordings(format: Format, path: Path, agent_type: str) -> Iterator[Recording]:
    if isinstance(format, Recorder):
        yield from format.recordings(path, agent_type)
        return
    if agent_type:
        raise UsageError(f"the format {format.name!r} says itself whose words they are; --agent-type is for captures", fix="leave it out")
    for conversation in format.read(path):
        yield _as_recording(conversation.whole())


async def _next(recordings: Iterator[T]) -> T | None:
    """The next, read and translated off the event loop."""
    advance: Callable[[], T | None] = lambda: next(recordings, None)  # noqa: E731
    return await anyio.to_thread.run_sync(advance)


async def _one(holdings: Holdings, format: Format, path: Path, recording: Recording, directory: str, *, dry_run: bool) -> Imported:
    known = await _known(holdings, format, recording)
    if known is not None:
        had = known.origin.get("events") if known.origin is not None else None
        grown = len(recording.events) - had if isinstance(had, int) else 0
        return Imported("known", known, recording, max(grown, 0))
    renamed = _renamed(recording, directory)
    origin: JsonObject = {"format": format.name, "version": format.version, "source_id": recording.source_id, "path": str(path)}
    origin |= {"directory": recording.conversation.directory, "events": len(recording.events)}
    renamed = replace(renamed, conversation=replace(renamed.conversation, origin=origin))
    if dry_run:
        return Imported("would be added", renamed.conversation, recording)
    for media_type in dict.fromkeys(content.media_type for content in renamed.contents.values()):
        some = [content.data for content in renamed.contents.values() if content.media_type == media_type]
        await holdings.blobs.put_all(some, media_type)
    return Imported("added", await holdings.imports.add(renamed), recording)


async def _known(holdings: Holdings, format: Format, recording: Recording) -> Conversation | None:
    """What an earlier import made of it, or the very conversation that it is a recording of."""
    if (found := await holdings.imports.find(format.name, recording.source_id)) is not None:
        return found
    try:
        own = await holdings.conversations.get(recording.source_id)
    except NotFound:
        return None
    return own if own.id == recording.source_id and own.id else None


def _as_recording(whole: WholeConversation) -> Recording:
    """Messages without runs: one event for each, with the source's own records."""
    source, facts = whole.conversation, whole.facts
    events: list[Event] = []
    messages: list[Message] = []
    for entry in whole.entries:
        if isinstance(entry, ImportedMessage):
            body: JsonObject = {"id": entry.source_id, "role": entry.role, "parent": entry.parent, "parts": list(entry.parts)}
            at = entry.created_at or facts.created_at
            events.append(Event("message", raw=entry.raw, body={**body, "metadata": entry.metadata}, at=at * 1000))
            messages.append(
                Message(
                    entry.source_id,
                    entry.role,
                    entry.parts,
                    entry.metadata,
                    parent=entry.parent,
                    first_seq=len(events),
                    created_at=at,
                )
            )
        else:
            events.append(Event("meta", raw=entry.raw, body={"record": entry.body}))
    head = facts.head or (messages[-1].id if messages else None)
    conversation = Conversation(
        source.source_id,
        title=facts.title,
        title_source="model" if facts.title else "none",
        model=facts.model,
        directory=facts.directory,
        head=head,
        created_at=facts.created_at or (messages[0].created_at if messages else 0),
        updated_at=facts.updated_at or (messages[-1].created_at if messages else 0),
    )
    numbered = tuple(event._replace(seq=seq) for seq, event in enumerate(events, 1))
    return completed(Recording(source.source_id, conversation, tuple(messages), (), (), numbered, fidelity=whole.fidelity))


# ── ids of its own ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _renamed(recording: Recording, directory: str) -> Recording:
    """The same under new ids: what a file calls itself may be taken here, by somebody else too."""
    old = recording.conversation
    ids = {old.id: new_id(), **{message.id: new_id() for message in recording.messages}, **{run.id: new_id() for run in recording.runs}}
    ids |= {exchange.id: _exchange_id(exchange, ids, old.id) for exchange in recording.exchanges}
    conversation = Conversation(
        ids[old.id],
        title=old.title,
        title_source=old.title_source if old.title_source != "user" else "model",
        agent=old.agent,
        agent_type=old.agent_type,
        model=old.model,
        directory=directory,  # not the file's: what tools may reach is never said by what was brought in
        head=ids.get(old.head or ""),
        created_at=old.created_at,
        updated_at=old.updated_at,
    )
    return replace(
        recording,
        conversation=conversation,
        messages=tuple(_message(message, ids, conversation.id) for message in recording.messages),
        runs=tuple(_run(run, ids, conversation.id) for run in recording.runs),
        exchanges=tuple(
            replace(exchange, id=ids[exchange.id], run=ids.get(exchange.run, ""), conversation=conversation.id)
            for exchange in recording.exchanges
        ),
        events=tuple(_event(event, ids) for event in recording.events),
        deleted=frozenset(ids[id] for id in recording.deleted if id in ids),
    )


def _exchange_id(exchange: Exchange, ids: dict[str, str], conversation: str) -> str:
    """Derived from the run as it was, so that whoever derives it finds it."""
    base = exchange.run or conversation
    rest = exchange.id[len(base) :] if exchange.id.startswith(base) else f":{exchange.id}"
    return ids[base] + rest


def _message(message: Message, ids: dict[str, str], conversation: str) -> Message:
    return replace(
        message,
        id=ids[message.id],
        conversation=conversation,
        parent=ids.get(message.parent or ""),
        run=ids.get(message.run or ""),
        client_id=None,
        metadata=_own(message.metadata),
    )


def _run(run: Run, ids: dict[str, str], conversation: str) -> Run:
    recorded: JsonObject = {"run": run.id, "trigger": run.trigger, "session": run.agent_session_id}
    return replace(
        run,
        id=ids[run.id],
        conversation=conversation,
        message=ids[run.message],
        trigger="import",
        agent_session_id=None,  # nobody goes on in a session because a file names it
        parent_run=None,
        settings={**run.settings, "recorded": recorded},
    )


def _event(event: Event, ids: dict[str, str]) -> Event:
    body = event.body if event.kind == "raw" else _with_new_ids(event.body, ids)
    if event.kind == "message" and isinstance(body, dict) and isinstance(facts := body.get("metadata"), dict):
        body = {**body, "metadata": _own(facts)}
    chunks = event.chunks
    if any("messageMetadata" in piece or piece["type"] == "start" for piece in chunks):
        chunks = tuple(_told(piece, ids) for piece in chunks)
    return event._replace(
        run=ids.get(event.run) if event.run is not None else None,
        exchange=ids.get(event.exchange, event.exchange) if event.exchange is not None else None,
        body=body,
        chunks=chunks,
    )


def _told(chunk: Chunk, ids: dict[str, str]) -> Chunk:
    told = {**chunk, "messageId": ids.get(str(chunk.get("messageId")), "")} if chunk["type"] == "start" else chunk
    facts = told.get("messageMetadata")
    return {**told, "messageMetadata": _own(facts)} if isinstance(facts, dict) and "source" in facts else told


def _own(metadata: JsonObject) -> JsonObject:
    """Without `source`: that names a message of this home, whose run and session are followed."""
    return {name: value for name, value in metadata.items() if name != "source"}


def _with_new_ids(value: Json, ids: dict[str, str]) -> Json:
    if isinstance(value, str):
        return ids.get(value, value)
    if isinstance(value, list):
        return [_with_new_ids(item, ids) for item in value]
    return {name: _with_new_ids(item, ids) for name, item in value.items()} if isinstance(value, dict) else value
