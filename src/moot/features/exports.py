"""Export a conversation to a file in any format, or several conversations to a folder with an index."""

from __future__ import annotations

import os
import re
import time
import unicodedata
from base64 import b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import chain, count
from pathlib import Path
from typing import Literal

import anyio.to_thread

from moot.convert.history import without_withheld
from moot.errors import MootError, NotFound, UsageError
from moot.features.replays.compactions import with_summaries
from moot.plugins import FORMATS
from moot.runtime.history import without_unsent
from moot.store.tree.lists import listed_name
from moot.types.canonical import Json, JsonObject, dumps, loads_object
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.exchange import Exchange
from moot.types.format import (
    AgentSessions,
    DeclaresFidelity,
    ExportedConversation,
    ExportFile,
    Fidelity,
    Format,
    Installable,
    Resumable,
    TerminalReadable,
    WriteOnly,
)
from moot.types.imports import Content, Recorder, Recording
from moot.types.maintenance import StoredCopy
from moot.types.message import Message, Part
from moot.types.run import Run
from moot.types.store import OwnerStore, Store

_EVENTS_PAGE = 512
_CHILDREN = 200
_DEEPEST = 8
_HASH = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_PIECE = 1 << 18
"""Number of bytes to search at a time."""


async def export_conversation(holdings: OwnerStore, conversation: Conversation, format: Format, *, branches: bool = True) -> ExportFile:
    """Return the conversation as a file in this format, with all its branches if the format supports them.

    Raise UsageError if the format is read-only.
    """
    if isinstance(format, Recorder):
        recording = await record_conversation(holdings, conversation)
        return await anyio.to_thread.run_sync(format.record, recording)
    found = await gather(holdings, conversation, format, branches=branches, counted=True)
    return await anyio.to_thread.run_sync(format.write, found)


async def gather(
    holdings: OwnerStore, conversation: Conversation, format: Format, *, branches: bool = True, counted: bool = False
) -> ExportedConversation:
    """Return the parts of the conversation that the format supports, such as attached files, other branches and sub-agents.

    If `counted` is True, also include unsupported branches and sub-agents,
    but not their files, so that the format can report them as lost.
    """
    branched, nested = can_hold(format, "branches"), can_hold(format, "sub-agents")
    whole = await _whole(holdings, conversation, branches=branches and branched, depth=_DEEPEST if nested else 0)
    if isinstance(format, TerminalReadable | WriteOnly):  # formats that people read
        whole = replace(whole, messages=tuple(await with_summaries(holdings.tree, whole.messages)))
    if isinstance(format, AgentSessions | Installable | Resumable):  # formats from which an agent may continue
        sent = without_withheld(await without_unsent(holdings, conversation.id, whole.messages))
        whole = replace(whole, messages=tuple(sent))
    if counted and branches and not branched:
        whole = replace(whole, others=await _others(holdings, conversation.id, whole.messages, files=False))
    if counted and not nested:
        found = await _children(holdings, conversation.id)
        inside = [await _whole(holdings, one, branches=branches, depth=_DEEPEST - 1, files=False) for one in found]
        whole = replace(whole, children=tuple(inside))
    return whole


def can_hold(format: Format, thing: str) -> bool:
    """Return whether files in this format can contain items of this kind. Kinds are named as in `Counts`."""
    return isinstance(format, DeclaresFidelity) and thing in format.holds


async def _whole(
    holdings: OwnerStore, conversation: Conversation, *, branches: bool, depth: int, files: bool = True
) -> ExportedConversation:
    messages = await holdings.conversations.branch(conversation.id)
    others = await _others(holdings, conversation.id, messages, files=files) if branches else ()
    found = await _children(holdings, conversation.id) if depth else ()
    children = [await _whole(holdings, one, branches=branches, depth=depth - 1, files=files) for one in found]
    shown = tuple([await with_files(holdings, message) if files else message for message in messages])
    return ExportedConversation(conversation, shown, others, tuple(children))


async def _children(holdings: OwnerStore, conversation: str) -> Sequence[Conversation]:
    page = await holdings.conversations.list(parent=conversation, archived=None, limit=_CHILDREN)
    return page.items[::-1]


async def _others(holdings: OwnerStore, conversation: str, shown: Iterable[Message], *, files: bool) -> tuple[Message, ...]:
    """Return the messages of the other branches.
    Children of a deleted message are attached to its closest ancestor that was not deleted.
    """
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
        found.append(replace(await with_files(holdings, message) if files else message, parent=parent))
    return tuple(found)


async def record_conversation(holdings: OwnerStore, conversation: Conversation) -> Recording:
    """Return the whole conversation with all its branches."""
    events: list[Event] = []
    while page := await holdings.log.read(conversation.id, after=events[-1].seq if events else 0, limit=_EVENTS_PAGE):
        events += page
    nodes = await holdings.tree.nodes(conversation.id)
    messages = tuple([await holdings.conversations.message(node.id) for node in nodes])
    runs: list[Run] = []
    while page := await holdings.records.runs(conversation=conversation.id, before=runs[-1].no if runs else None):
        runs += page
    runs.reverse()
    named = dict.fromkeys(event.exchange for event in events if event.exchange is not None)
    exchanges = [one for id in named if (one := await holdings.records.exchange(id)) is not None]
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
        Fidelity({name: number for name, number in counts.items() if number}),
    )


async def _contents(
    holdings: OwnerStore, events: Iterable[Event], exchanges: Iterable[Exchange], runs: Iterable[Run]
) -> dict[str, Content]:
    values: Iterable[Json] = chain(
        (exchange.request for exchange in exchanges),
        (run.settings for run in runs),
        ([list(event.chunks), event.body] for event in events if event.kind != "raw"),
    )
    found: dict[str, Content] = {}
    for name in await anyio.to_thread.run_sync(_hashes, values):
        try:
            blob = await holdings.blobs.about(name)
            found[name] = Content(await holdings.blobs.get(name), blob.media_type)
        except NotFound:
            continue  # 64 hex digits that don't name a blob
    return found


def _hashes(values: Iterable[Json]) -> list[str]:
    """Return strings that may be names of blobs, without duplicates. Long texts are searched in pieces, so that other threads can run."""
    found: dict[bytes, None] = {}
    for value in values:
        text = dumps(value)
        for start in range(0, len(text), _PIECE):
            # pieces overlap by a name and a character on each side; cutting a longer number can only add a name that doesn't exist
            piece = text[max(0, start - 1) : start + _PIECE + 65]
            found.update(dict.fromkeys(_HASH.findall(piece)))
    return [name.decode() for name in found]


async def with_files(holdings: OwnerStore, message: Message) -> Message:
    """Return the message with its stored files as `data:` URLs."""
    parts = list[Part]()
    for part in message.parts:
        url = part.get("url")
        if part.get("type") == "file" and isinstance(url, str) and url.startswith("blob:"):
            data = b64encode(await holdings.blobs.get(url.removeprefix("blob:"))).decode()
            part = {**part, "url": f"data:{part.get('mediaType', 'application/octet-stream')};base64,{data}"}
        parts.append(part)
    return replace(message, parts=tuple(parts))


INDEX = "index.jsonl"
"""Name of the index file. It has one line per conversation with its id, file, title and state.
If an id has several lines, the last one is valid.
"""

_CHARACTERS = 60
_BYTES = 150
_PAGE = 200
_LATEST = 253_402_300_799_000


@dataclass(frozen=True, slots=True)
class Filter:
    """A selection of conversations. Empty fields match everything."""

    project: str = ""
    """Project id."""
    agent: str = ""
    """Name of an agent of moot, or of an agent whose conversations were imported; see `listed_name`."""
    since: int = 0
    """Time in ms. Matches conversations whose last activity was at or after this time."""


@dataclass(frozen=True, slots=True)
class Document:
    """An exported conversation to be written to a file."""

    written: ExportFile
    title: str
    """Title to use in the file name. It is redacted if the document is."""


@dataclass(frozen=True, slots=True)
class FileResult:
    """The result of exporting one conversation."""

    conversation: Conversation
    outcome: Literal["written", "unchanged", "failed"]
    file: str = ""
    """Name of the file in the folder."""
    fidelity: Fidelity = field(default_factory=Fidelity)
    problem: str = ""
    size: int = 0


async def select_conversations(holdings: OwnerStore, filter: Filter, format: Format) -> list[Conversation]:
    """Return the conversations to write to separate files, oldest first.
    Sub-agents are left out if the format includes them in their parent's file.
    """
    found: list[Conversation] = []
    cursor: str | None = None
    nested = can_hold(format, "sub-agents")
    conversations = holdings.conversations
    agent = listed_name("agent", filter.agent, await conversations.choices()) if filter.agent else None
    while True:
        page = await conversations.list(limit=_PAGE, cursor=cursor, archived=None, project=filter.project or None, agent=agent)
        recent = [one for one in page.items if one.updated_at >= filter.since]
        found += [one for one in recent if not (nested and one.parent is not None)]
        cursor = page.next_cursor
        if cursor is None or len(recent) < len(page.items):
            return found[::-1]


async def export_all(
    holdings: OwnerStore,
    conversations: Sequence[Conversation],
    folder: Folder,
    make: Callable[[Conversation], Awaitable[Document]],
    options: str,
) -> AsyncGenerator[FileResult, None]:
    """Export each conversation and yield its result. `options` describes all export options; if it changes, all files are written again.

    If a conversation can't be written, the others are still exported. Raise MootError if the folder itself can't be used.
    """
    await anyio.to_thread.run_sync(folder.begin)
    for one in conversations:
        seq = await holdings.log.last_seq(one.id)
        state = blake2b(dumps([options, one.title, one.head, one.archived_at, seq]), digest_size=12).hexdigest()
        if (name := await anyio.to_thread.run_sync(folder.known, one.id, state)) is not None:
            yield FileResult(one, "unchanged", name)
            continue
        try:
            sheet = await make(one)
        except MootError as error:
            yield FileResult(one, "failed", problem=error.advice())
            continue
        name = await anyio.to_thread.run_sync(folder.add, one, state, sheet)
        yield FileResult(one, "written", name, sheet.written.fidelity, size=len(sheet.written.data))


class Folder:
    """The folder and its index. Not safe for concurrent use."""

    def __init__(self, path: Path, suffix: str) -> None:
        self.path = path
        self._suffix = suffix
        self._index: dict[str, JsonObject] = {}
        self._used_names = set[str]()

    def begin(self) -> None:
        """Create the folder if needed, and read the index."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._used_names = {path.name.casefold() for path in self.path.iterdir()}
            lines = (self.path / INDEX).read_bytes().splitlines() if (self.path / INDEX).is_file() else []
        except OSError as error:
            raise MootError(f"Cannot use the folder {str(self.path)!r}: {error.strerror}.") from error
        for line in lines:
            try:
                entry = loads_object(line)
            except ValueError:
                continue  # the last line of an interrupted export; its file is recognized by its content
            self._index[str(entry.get("id"))] = entry

    def known(self, id: str, state: str) -> str | None:
        """Return the file that already contains this state of the conversation, or None."""
        entry = self._index.get(id)
        if entry is None or entry.get("state") != state:
            return None
        name, size = str(entry.get("file")), entry.get("bytes")
        path = self.path / name
        complete = Path(name).name == name and path.is_file() and (size is None or path.stat().st_size == size)
        return name if complete else None

    def add(self, conversation: Conversation, state: str, sheet: Document) -> str:
        """Write the conversation's file and index line. Keep the name of an existing file. Raise MootError if writing fails."""
        name = self._name(conversation, sheet)
        write_private_file(self.path / name, sheet.written.data)
        self._used_names.add(name.casefold())
        entry: JsonObject = {"id": conversation.id, "file": name, "title": sheet.title, "bytes": len(sheet.written.data), "state": state}
        self._index[conversation.id] = entry
        try:
            with os.fdopen(os.open(self.path / INDEX, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600), "ab") as index:
                index.write(dumps(entry) + b"\n")
        except OSError as error:
            raise MootError(f"Cannot write {str(self.path / INDEX)!r}: {error.strerror}.") from error
        return name

    def end(self) -> None:
        """Compact the index to one line per conversation."""
        if self._index:
            write_private_file(self.path / INDEX, b"".join(dumps(entry) + b"\n" for entry in self._index.values()))

    def _name(self, conversation: Conversation, sheet: Document) -> str:
        before = str(self._index.get(conversation.id, {}).get("file") or "")
        if before and Path(before).name == before and before.endswith(self._suffix):
            return before
        day = datetime.fromtimestamp(min(conversation.created_at, _LATEST) / 1000, UTC).strftime("%Y-%m-%d")
        stem = f"{day}-{slug(sheet.title) or conversation.id[-8:]}"
        indexed, data = {str(entry.get("file")) for entry in self._index.values()}, sheet.written.data
        for number in count(1):
            name = f"{stem}{f'-{number}' if number > 1 else ''}{self._suffix}"
            path = self.path / name
            if name.casefold() not in self._used_names:
                return name
            # the index may have been truncated after the file was written
            if name not in indexed and path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
                return name
        raise AssertionError("there is always another number")


def write_private_file(path: Path, data: bytes) -> None:
    """Write a file atomically. Only its owner can read it, because conversations are private.

    If the path is not a regular file but, for example, a pipe, it is written to directly. Raise MootError if writing fails.
    """
    unfinished = path.with_name(f".{os.getpid()}.unfinished")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        unfinished.touch(0o600, exist_ok=False)
        unfinished.write_bytes(data)
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise MootError(f"Cannot write {str(path)!r}: {error.strerror}.") from error


async def save_conversation(store: Store, conversation: Conversation, name: str, folder: Path) -> Path:
    """Export the conversation to a new file in the folder, named after its title. Return the file's path. Later purges report this path.

    Raise UsageError if the format is unknown or read-only.
    """
    if name not in FORMATS:
        raise UsageError(FORMATS.unknown(name))
    format: Format = FORMATS.make(name)
    written = await export_conversation(store, conversation, format)
    stem = slug(conversation.title) or conversation.id
    path = next(path for number in count(1) if not (path := folder / f"{stem}{f'-{number}' if number > 1 else ''}{format.suffix}").exists())
    await anyio.to_thread.run_sync(write_private_file, path, written.data)
    await store.erasure.register_files([StoredCopy(str(path), "export", time.time_ns() // 1_000_000, len(written.data), conversation.id)])
    return path


def slug(title: str) -> str:
    """Convert a text to a file name that is short enough for every file system.
    Letters and digits of any language are kept; everything else becomes single hyphens.
    """
    signs = unicodedata.normalize("NFC", title).lower()
    words = "".join(sign if sign.isalnum() or unicodedata.category(sign) == "Mn" else "-" for sign in signs)
    slug = "-".join(filter(None, words.split("-")))[:_CHARACTERS]
    return slug.encode()[:_BYTES].decode(errors="ignore").strip("-")
