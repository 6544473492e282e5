"""Storage of imported conversations: message by message while a source is read, or as a whole recording.

A recording is imported only once. It gets new ids, and nothing in the file can grant permissions.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import anyio.to_thread

from moot.config.settings import Settings
from moot.convert.imports import key_at_host
from moot.errors import NotFound, UsageError
from moot.guard.roots import folders
from moot.imports.arrivals import key_of
from moot.imports.reader import Piece, PriceSettings, Summary
from moot.imports.report import NOTES, ImportResult, Outcome, fidelity_json
from moot.imports.sources import Source
from moot.providers.catalogue import own_prices
from moot.runtime.titles import first_line
from moot.types.canonical import Json, JsonObject, loads
from moot.types.chunk import Chunk
from moot.types.conversation import Conversation, Project
from moot.types.event import Event
from moot.types.exchange import Exchange
from moot.types.format import AgentSessions, Fidelity, Format, ImportedConversation, ImportedFacts, Resumable
from moot.types.ids import new_id
from moot.types.imports import (
    FinalFacts,
    FirstMessage,
    ImportCounts,
    ImportTarget,
    IncomingConversation,
    IncomingEntry,
    Recorder,
    Recording,
)
from moot.types.message import Message, Part
from moot.types.run import Run
from moot.types.store import OwnerStore

_HELD = 8 << 20
"""Maximum number of raw bytes to buffer while it is unclear whether a conversation must be imported. After that, it is imported."""
_METADATA = 16 << 10
"""Maximum length of a source's metadata, as text. Longer metadata is not stored in the conversation's `origin`."""
YOUNG = 60
"""Seconds after the last change of a source during which an incomplete record is assumed to be still being written."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import."""

    home: Path = field(default_factory=Path.home)
    since: int = 0
    """Time in ms; conversations whose newest message is older are skipped. 0 means that none are skipped."""
    dry_run: bool = False
    agent_type: str = ""
    """Agent type of captured output streams; empty to detect it."""
    projects: bool = False
    """True to also import files that programs store in the folders of conversations."""
    prices: PriceSettings = field(default_factory=PriceSettings)
    """Prices for calls whose cost the source doesn't contain."""

    @staticmethod
    def of(settings: Settings, **options: Any) -> ImportOptions:
        """Return options with the configured prices."""
        return ImportOptions(prices=PriceSettings(settings.home, own_prices(settings.providers)), **options)


@dataclass(slots=True)
class ConversationImport:
    """The import of one conversation, whose entries arrive in batches."""

    holdings: OwnerStore
    source: Source
    wanted: ImportOptions
    reading: ImportedConversation
    received: ImportTarget | None = None
    buffered: list[Piece] = field(default_factory=list[Piece])
    buffered_size: int = 0
    facts: ImportedFacts = field(default_factory=ImportedFacts)
    summary: Summary = field(default_factory=Summary)
    """Summary of the entries so far, including those of earlier readings that this one continues."""
    counts: ImportCounts = field(default_factory=ImportCounts)
    unfinished: bool = False
    """True if the last record seems to be incomplete. The next import reads it again."""
    continued: str = ""
    """Id of the conversation that contains the entries of earlier readings. Empty if the source is read as a whole."""
    _changing: bool = False
    """True once the entries may still change."""

    @staticmethod
    def of(holdings: OwnerStore, source: Source, wanted: ImportOptions, piece: Piece) -> ConversationImport:
        """Return the import that begins with this batch."""
        before = piece.state
        if before is None or not before.id:
            return ConversationImport(holdings, source, wanted, piece.conversation)
        return ConversationImport(holdings, source, wanted, piece.conversation, summary=replace(before.summary), continued=before.id)

    async def take(self, piece: Piece) -> bool:
        """Store a batch of entries, or buffer it until it is known whether the conversation must be imported.

        Return False if the whole source must be read instead, because the entries of earlier readings are not in the conversation any more.
        """
        self.facts = piece.facts
        if piece.may_change and piece.state is not None and not self._changing:
            self._changing, piece.state.summary = True, replace(self.summary)
        arrivals = tuple([arrival for arrival in piece.arrivals if self._accept(arrival)])
        piece = replace(piece, arrivals=arrivals)
        if self.received is None and not self._is_wanted():
            self.buffered.append(piece)
            self.buffered_size += piece.size
            return True
        if self.received is None:
            self.received = await self.holdings.imports.receive(self._arriving(), dry_run=self.wanted.dry_run)
            if self.continued and (self.received.is_new or self.continued != self.continuable):
                return False
        for one in (*self.buffered, piece):
            await self._store(self.received, one.arrivals)
        self.buffered = []
        return True

    @property
    def continuable(self) -> str:
        """Id of the conversation, if the next import can continue after the entries that are stored, or an empty string."""
        received = self.received
        is_partial = received is None or received.closed or received.is_alias or self.wanted.dry_run
        return "" if received is None or is_partial or received.version not in (0, self.source.format.version) else received.id

    async def finish(self) -> ImportResult | None:
        """Return the outcome after the last batch, or None if the conversation is older than `since`."""
        if self.received is None:
            return self._result("empty", None) if not self.summary.started else None
        if self.received.closed:
            purged = not self.received.id
            return self._result("purged" if purged else "known", None if purged else await self._stored(self.received))
        if self.wanted.dry_run:
            outcome: Outcome = "would be added" if self.received.is_new else "would grow" if self.counts.changed else "known"
            return self._result(outcome, None if not self.received.is_new else self._as_new())
        if not self.received.is_new and not self.counts.changed and self.received.version == self.source.format.version:
            stored = await self._stored(self.received)
            if self.received.is_alias or stored.title_source == "user" or self.facts.title in ("", stored.title):
                return self._result("known", stored)
        if self.received.is_alias:
            return self._result("grown" if self.counts.changed else "known", await self._stored(self.received))
        conversation = await self.holdings.imports.settle(self.received, self._settled())
        await self._note_hidden(conversation)
        return self._result("added" if self.received.is_new else "grown" if self.counts.changed else "known", conversation)

    async def _stored(self, received: ImportTarget) -> Conversation:
        return await self.holdings.conversations.get(received.id)

    # ── entries ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _accept(self, arrival: IncomingEntry) -> bool:
        """Update the state from an entry. Return False if the entry is incomplete, so that the next import reads it."""
        if arrival.role is None:
            return self._accept_record(arrival)
        summary = self.summary
        summary.messages += 1
        summary.started = summary.started or arrival.role != "system" or not (self.source.placed or self.source.host)
        summary.unpriced += arrival.unpriced
        summary.last = arrival.key
        summary.first = summary.first or FirstMessage(arrival.key, arrival.digest, arrival.created_at)
        if arrival.created_at:
            summary.first_at = min(summary.first_at or arrival.created_at, arrival.created_at)
            summary.last_at = max(summary.last_at, arrival.created_at)
        if not summary.title and arrival.role == "user":
            summary.title = first_line(cast("list[Part]", loads(arrival.parts)))
        return True

    def _accept_record(self, record: IncomingEntry) -> bool:
        if not record.problem:
            return True
        is_young = time.time() - self.source.mark.modified_at / 1e9 < YOUNG
        if is_young and record.raw and not record.raw.endswith(b"\n") and not _is_json(record.raw):
            self.unfinished = True
            return False
        self.summary.problems += 1
        if len(self.summary.notes) < NOTES:
            self.summary.notes += (self.source.said(record.problem),)
        return True

    async def _note_hidden(self, conversation: Conversation) -> None:
        """Add a note if changes in the source are on a hidden branch, because the shown one was changed in moot since the last import."""
        if self.received is None or not self.received.rewritten:
            return
        shown = {message.id for message in await self.holdings.conversations.branch(conversation.id)}
        if shown.isdisjoint(self.received.rewritten.values()):
            words = "messages changed in the source; they are on another branch, because the conversation was also changed in moot"
            self.summary.notes += (f"{words}. To see all branches, run: moot chat tree {conversation.id[:13]}",)

    def _is_wanted(self) -> bool:
        if not self.summary.started:
            return self.buffered_size > _HELD
        newest = max(self.summary.last_at, self.facts.updated_at)
        return not newest or newest >= self.wanted.since or self.buffered_size > _HELD

    async def _store(self, received: ImportTarget, arrivals: tuple[IncomingEntry, ...]) -> None:
        if received.closed or not arrivals:
            self.counts += ImportCounts(known=len(arrivals))
            return
        anew = not received.is_new and 0 < received.version < self.source.format.version
        self.counts += await self.holdings.imports.take(received, arrivals, compare=anew, dry_run=self.wanted.dry_run)

    # ── the conversation ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _arriving(self) -> IncomingConversation:
        format = self.source.format
        resumable = self.source.placed and not self.source.program and isinstance(format, Resumable)
        reading, made = self.reading, self._as_new()
        return IncomingConversation(
            format.name,
            format.version,
            reading.source_id,
            made,
            reading.parent,
            reading.parent_call,
            reading.copied_from,
            reading.rank,
            reading.started_at or made.created_at,
            resumable,
            self.source.host,
            self.summary.first,
        )

    def _as_new(self) -> Conversation:
        facts, summary = self.facts, self.summary
        at = summary.first_at or facts.created_at or self.source.mark.modified_at // 1_000_000
        return Conversation(
            new_id(),
            project="",
            title=facts.title or summary.title,
            title_source="model" if facts.title else "first-line" if summary.title else "none",
            model=facts.model,
            last_model=facts.model,
            directory=self._directory(facts.directory),
            origin=self._origin(),
            host=self.source.host,
            created_at=at,
            updated_at=at,
        )

    def _directory(self, written: str) -> str:
        """Return a directory that the source names, or an empty string if it is not usable or not trusted.

        Tools may access the directory, so it is trusted only if the source is in its program's standard location.
        """
        path, home = Path(written), self.wanted.home
        is_usable = self.source.placed and path.is_absolute() and path.is_dir() and path not in (home, *home.parents)
        return written if is_usable else ""

    def _allowed(self) -> tuple[str, ...]:
        """Return the source's allowed folders that are inside its directory. A source can only restrict what tools access."""
        directory = self._directory(self.facts.directory)
        try:
            named = folders(self.facts.allowed_uris) if directory else ()
        except UsageError:
            return ()
        return tuple(str(folder) for folder in named if folder.is_relative_to(directory) and folder.is_dir())

    def _project(self) -> Project | None:
        found = self.facts.project
        if found is None:
            return None
        id, root = f"{self.source.format.name}:{key_at_host(self.source.host, found.source_id)}", self._directory(found.directory) or None
        return Project(id, found.name, found.description, root, found.context, found.rules, found.created_at)

    def _origin(self) -> JsonObject:
        format, facts = self.source.format, self.facts
        origin: JsonObject = {
            "format": format.name,
            "version": format.version,
            "source_id": self.reading.source_id,
            "path": self.source.name,
        }
        origin |= {"directory": facts.directory, "placed": self.source.placed}
        program = self.source.program
        agent_type = format.agent_type if isinstance(format, AgentSessions) and not program else ""
        named = {"agent": program or facts.agent, "program": program, "model": facts.model, "key": facts.key, "agent_type": agent_type}
        origin |= {name: value for name, value in named.items() if value}
        if facts.metadata and len(str(facts.metadata)) <= _METADATA:
            origin["metadata"] = facts.metadata
        return origin

    def _settled(self) -> FinalFacts:
        facts, summary = self.facts, self.summary
        fidelity: JsonObject = {"fidelity": fidelity_json(facts.fidelity), "problems": summary.problems}
        return FinalFacts(
            self.source.format.version,
            key_of(facts.head) if facts.head is not None else summary.last,
            facts.title or summary.title,
            "model" if facts.title else "first-line",
            facts.model,
            facts.created_at,
            max(facts.updated_at, summary.last_at),
            facts.archived,
            self._directory(facts.directory),
            self._allowed(),
            facts.is_finished,
            self._project(),
            {**self._origin(), **fidelity},
        )

    def _result(self, outcome: Outcome, conversation: Conversation | None) -> ImportResult:
        format = self.source.format
        return ImportResult(
            outcome,
            format.name,
            self.source.name,
            self.reading.source_id,
            conversation,
            format.agent_type if isinstance(format, AgentSessions) and not self.source.program else "",
            conversation.title if conversation is not None else self.facts.title or self.summary.title,
            self.counts,
            self.summary.messages,
            self.facts.fidelity if outcome != "empty" else Fidelity(),
            self.summary.problems,
            self.summary.notes,
            unpriced=self.summary.unpriced,
        )


def _is_json(raw: bytes) -> bool:
    """Return whether the bytes are complete JSON. A record that is still being written is not."""
    try:
        loads(raw)
    except (ValueError, RecursionError):
        return False
    return True


async def import_recordings(
    holdings: OwnerStore, source: Source, format: Recorder, wanted: ImportOptions
) -> AsyncGenerator[ImportResult, None]:
    """Import the recordings of a file. Yield the result of each, even if it was imported before.

    Raise UsageError if the file is invalid, StoreError if storing fails.
    """
    recordings = format.recordings(source.path, wanted.agent_type)
    while (recording := await anyio.to_thread.run_sync(lambda: next(recordings, None))) is not None:
        yield await _import_one(holdings, source, recording, wanted)


async def _import_one(holdings: OwnerStore, source: Source, recording: Recording, wanted: ImportOptions) -> ImportResult:
    format = source.format
    known = await _known(holdings, format, recording)
    if known is not None:
        stored_events = known.origin.get("events") if known.origin is not None else None
        grown = len(recording.events) - stored_events if isinstance(stored_events, int) else 0
        return _result("known", source, recording, known, max(grown, 0))
    renamed = _renamed(recording)
    origin: JsonObject = {"format": format.name, "version": format.version, "source_id": recording.source_id, "path": source.name}
    origin |= {"directory": recording.conversation.directory, "events": len(recording.events)}
    origin["fidelity"] = fidelity_json(recording.fidelity)
    renamed = replace(renamed, conversation=replace(renamed.conversation, origin=origin))
    if wanted.dry_run:
        return _result("would be added", source, recording, renamed.conversation)
    for media_type in dict.fromkeys(content.media_type for content in renamed.contents.values()):
        some = [content.data for content in renamed.contents.values() if content.media_type == media_type]
        await holdings.blobs.put_all(some, media_type)
    return _result("added", source, recording, await holdings.imports.add(renamed))


def _result(outcome: Outcome, source: Source, recording: Recording, conversation: Conversation, grown: int = 0) -> ImportResult:
    messages = len(recording.messages)
    return ImportResult(
        outcome,
        source.format.name,
        source.name,
        recording.source_id,
        conversation,
        recording.conversation.agent_type,
        recording.conversation.title or conversation.title,
        ImportCounts(added=messages) if outcome != "known" else ImportCounts(known=messages),
        messages,
        recording.fidelity,
        sum(recording.fidelity.lost.values()),
        recording.notes,
        grown,
    )


async def _known(holdings: OwnerStore, format: Format, recording: Recording) -> Conversation | None:
    """Return the conversation from an earlier import of the recording, or else the original that was recorded, or None."""
    if (found := await holdings.imports.find(format.name, recording.source_id)) is not None:
        return found
    try:
        own = await holdings.conversations.get(recording.source_id)
    except NotFound:
        return None
    return own if own.id == recording.source_id and own.id else None


def _renamed(recording: Recording) -> Recording:
    """Return the recording with new ids, because the file's ids may already be used, even by another user.

    The directory is left out, because imported data must not decide what tools may access.
    """
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
        last_model=old.last_model,
        head=ids.get(old.head or ""),
        created_at=old.created_at,
        updated_at=old.updated_at,
        pinned_at=old.pinned_at,
        tags=old.tags,
    )
    exchanges = tuple(replace(one, id=ids[one.id], run=ids.get(one.run, ""), conversation=ids[old.id]) for one in recording.exchanges)
    return replace(
        recording,
        conversation=conversation,
        messages=tuple(_message(message, ids, conversation.id) for message in recording.messages),
        runs=tuple(_run(run, ids, conversation.id) for run in recording.runs),
        exchanges=exchanges,
        events=tuple(_event(event, ids) for event in recording.events),
        deleted=frozenset(ids[id] for id in recording.deleted if id in ids),
    )


def _exchange_id(exchange: Exchange, ids: dict[str, str], conversation: str) -> str:
    """Return a new exchange id that starts with the new id of its run or conversation, as in conversations that moot recorded."""
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
        metadata=_without_source(message.metadata),
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
        body = {**body, "metadata": _without_source(facts)}
    chunks = event.chunks
    if any("messageMetadata" in piece or piece["type"] == "start" for piece in chunks):
        chunks = tuple(_with_ids(piece, ids) for piece in chunks)
    return event._replace(
        run=ids.get(event.run) if event.run is not None else None,
        exchange=ids.get(event.exchange, event.exchange) if event.exchange is not None else None,
        body=body,
        chunks=chunks,
    )


def _with_ids(chunk: Chunk, ids: dict[str, str]) -> Chunk:
    renamed_chunk = {**chunk, "messageId": ids.get(str(chunk.get("messageId")), "")} if chunk["type"] == "start" else chunk
    facts = renamed_chunk.get("messageMetadata")
    return {**renamed_chunk, "messageMetadata": _without_source(facts)} if isinstance(facts, dict) and "source" in facts else renamed_chunk


def _without_source(metadata: JsonObject) -> JsonObject:
    """Return a message's metadata without `source`, because its id could be that of an unrelated message in this installation."""
    return {name: value for name, value in metadata.items() if name != "source"}


def _with_new_ids(value: Json, ids: dict[str, str]) -> Json:
    if isinstance(value, str):
        return ids.get(value, value)
    if isinstance(value, list):
        return [_with_new_ids(item, ids) for item in value]
    return {name: _with_new_ids(item, ids) for name, item in value.items()} if isinstance(value, dict) else value
