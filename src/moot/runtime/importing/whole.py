"""Import of recordings: only once, under new ids, and without permissions from the file."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

import anyio.to_thread

from moot.errors import NotFound
from moot.runtime.importing.intake import Wanted
from moot.runtime.importing.reports import Brought, Outcome, fidelity_json
from moot.runtime.importing.sources import Source
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.exchange import Exchange
from moot.types.format import Format
from moot.types.ids import new_id
from moot.types.imports import Taken
from moot.types.message import Message
from moot.types.recording import Recorder, Recording
from moot.types.run import Run
from moot.types.store import Holdings

__all__ = ["recorded_in"]


async def recorded_in(holdings: Holdings, source: Source, format: Recorder, wanted: Wanted) -> AsyncGenerator[Brought, None]:
    """Yield each conversation of the file after it is stored or found. Raise UsageError or StoreError."""
    recordings = format.recordings(source.path, wanted.agent_type)
    while (recording := await anyio.to_thread.run_sync(lambda: next(recordings, None))) is not None:
        yield await _import_one(holdings, source, recording, wanted)


async def _import_one(holdings: Holdings, source: Source, recording: Recording, wanted: Wanted) -> Brought:
    format = source.format
    known = await _known(holdings, format, recording)
    if known is not None:
        stored_events = known.origin.get("events") if known.origin is not None else None
        grown = len(recording.events) - stored_events if isinstance(stored_events, int) else 0
        return _result("known", source, recording, known, max(grown, 0))
    renamed = _renamed(recording, wanted.directory)
    origin: JsonObject = {"format": format.name, "version": format.version, "source_id": recording.source_id, "path": source.name}
    origin |= {
        "directory": recording.conversation.directory,
        "events": len(recording.events),
        "fidelity": fidelity_json(recording.fidelity),
    }
    renamed = replace(renamed, conversation=replace(renamed.conversation, origin=origin))
    if wanted.dry_run:
        return _result("would be added", source, recording, renamed.conversation)
    for media_type in dict.fromkeys(content.media_type for content in renamed.contents.values()):
        some = [content.data for content in renamed.contents.values() if content.media_type == media_type]
        await holdings.blobs.put_all(some, media_type)
    return _result("added", source, recording, await holdings.imports.add(renamed))


def _result(outcome: Outcome, source: Source, recording: Recording, conversation: Conversation, grown: int = 0) -> Brought:
    messages = len(recording.messages)
    return Brought(
        outcome,
        source.format.name,
        source.name,
        recording.source_id,
        conversation,
        recording.conversation.agent_type,
        recording.conversation.title or conversation.title,
        Taken(added=messages) if outcome != "known" else Taken(known=messages),
        messages,
        recording.fidelity,
        sum(recording.fidelity.lost.values()),
        recording.notes,
        grown,
    )


async def _known(holdings: Holdings, format: Format, recording: Recording) -> Conversation | None:
    """Return the result of an earlier import, or the original conversation of the recording."""
    if (found := await holdings.imports.find(format.name, recording.source_id)) is not None:
        return found
    try:
        own = await holdings.conversations.get(recording.source_id)
    except NotFound:
        return None
    return own if own.id == recording.source_id and own.id else None


# ── new ids ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _renamed(recording: Recording, directory: str) -> Recording:
    """Return the recording under new ids, because the file's ids may already be used, even by another user."""
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
        directory=directory,  # not the file's: imported data must not decide what tools may access
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
    """Return an id derived from the run, as for original exchanges."""
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
        agent_session_id=None,  # a file must not make anyone resume a session that it names
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
    renamed_chunk = {**chunk, "messageId": ids.get(str(chunk.get("messageId")), "")} if chunk["type"] == "start" else chunk
    facts = renamed_chunk.get("messageMetadata")
    return {**renamed_chunk, "messageMetadata": _own(facts)} if isinstance(facts, dict) and "source" in facts else renamed_chunk


def _own(metadata: JsonObject) -> JsonObject:
    """Return the metadata without `source`, which would refer to a message of this installation."""
    return {name: value for name, value in metadata.items() if name != "source"}


def _with_new_ids(value: Json, ids: dict[str, str]) -> Json:
    if isinstance(value, str):
        return ids.get(value, value)
    if isinstance(value, list):
        return [_with_new_ids(item, ids) for item in value]
    return {name: _with_new_ids(item, ids) for name, item in value.items()} if isinstance(value, dict) else value
