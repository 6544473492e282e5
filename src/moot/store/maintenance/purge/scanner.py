"""Scanning all stored data for secrets.

Only a few hundred kilobytes are searched at a time, and other work may read in between. Findings keep the secrets in memory for a later
redaction. Only fingerprints, made with the store's random key, are shown.
"""

from __future__ import annotations

import base64
import re
import secrets as random
from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, LiteralString, TypeAlias

from moot.errors import StoreError
from moot.guard.detection import core, detect, rules, unescape
from moot.guard.secrets import HIDDEN, mask, redact
from moot.store.content.blobs import BlobFiles
from moot.store.database.connection import Connection, Queries
from moot.store.database.reader import Reader
from moot.store.database.transaction import Transaction
from moot.store.database.writer import Writer
from moot.store.log.rows import before_redaction
from moot.store.log.segments import log_rows
from moot.store.maintenance.purge.conversations import with_children
from moot.store.maintenance.purge.files import LARGEST, files_in
from moot.store.maintenance.purge.tables import BY_ITSELF, PLACES, select
from moot.store.rows import LISTED_AGENT_OF_C, parse_stored, parse_stored_object, parts_of, plain
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.maintenance import LISTED_PLACES, ScanReport, ScanScope, SecretFinding, SecretPlace
from moot.types.message import is_tool, tool_name

_BATCH = 256 << 10
"""Number of bytes that are searched at once."""
_STRETCH = 4 << 20
"""Number of bytes after which others may read and progress is reported."""
_PAGE = 200
_HEAD = 8192
"""Number of bytes at the start of a blob or file that are checked to detect whether it is text."""
_BORDER = b"\n\0\n"
_KEY, _CLEAN = "scan.key", "scan.clean"
_BLOB = re.compile(rb"blob:([0-9a-f]{64})")
_TEXT_URL = re.compile(rb"data:(?:text/|application/(?:json|xml|yaml|toml|x-))[\w/+.;=-]{0,80}base64,([A-Za-z0-9+/]+)")
_HASH = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_CHOSEN = (
    "SELECT c.no, c.id, c.title, h.next_seq FROM conversation AS c JOIN log_head AS h ON h.conversation = c.no WHERE c.no > ?"
    f" AND c.updated_at >= ? AND ? IN ('', c.project_id) AND ? IN ('', {LISTED_AGENT_OF_C}) ORDER BY c.no LIMIT {_PAGE}"
)
_MESSAGES = "SELECT no, id, role, parts, metadata, created_at FROM message WHERE conversation = ? AND no > ? ORDER BY no"
_LEFT_OUT = BY_ITSELF - {"exchange"} | {"setting"}
"""Tables that repeat the data of others, tables that are searched separately, and the table with scan results."""
_NAMES: dict[str, str] = {"conversation": "settings", "exchange": "request", "run": "run"}


@dataclass(frozen=True, slots=True)
class _Source:
    """The origin of a piece of data."""

    place: SecretPlace
    is_copy: bool = False
    """True for data that mostly repeats messages. Secrets already found in the conversation are not reported again."""
    message: tuple[bytes, bytes] | None = None
    """Parts and metadata of a message."""


_Piece: TypeAlias = tuple[int, _Source, bytes]
"""A position from which a later step can continue, and the data there."""
_Pieces: TypeAlias = Callable[[Connection, int], Iterator[_Piece]]


class _Search:
    """A search that is fed one piece of data after the other."""

    def __init__(self, report: ScanReport, key: bytes) -> None:
        self.detected = 0
        """Number of secrets detected so far, including those that are not reported again."""
        self.missed = 0
        """Number of times that data could not be searched."""
        self.blobs: dict[str, str] = {}
        """Names of the blobs to which the last conversation refers, each with a description."""
        self._report = report
        self._key = key
        self._texts: list[bytes] = []
        self._sources: list[_Source] = []
        self._size = 0
        self._reported: set[tuple[str, str | None]] = set()
        """Fingerprints of secrets, each with a conversation in which it was found outside of copied data."""

    def add(self, source: _Source, data: bytes) -> None:
        """Search the data, now or together with the next piece."""
        self._texts.append(unescape(data))
        self._sources.append(source)
        self._size += len(data)
        self._report.bytes += len(data)
        if self._size >= _BATCH:
            self.flush()

    def miss(self, problem: str) -> None:
        """Report data that can't be searched. A problem that several conversations share is listed once."""
        self.missed += 1
        if problem not in self._report.problems:
            self._report.problems.append(problem)

    def flush(self) -> None:
        """Search the data that is waiting."""
        starts, at = list[int](), 0
        for text in self._texts:
            starts.append(at)
            at += len(text) + len(_BORDER)
        for found in detect(_BORDER.join(self._texts)):
            number = bisect_right(starts, found.begin) - 1
            secret = self._texts[number][found.begin - starts[number] : found.end - starts[number]]
            self._note(self._sources[number], secret, found.kind)
        self._texts, self._sources, self._size = [], [], 0

    def _note(self, source: _Source, secret: bytes, kind: str) -> None:
        self.detected += 1
        meant = core(secret)
        fingerprint = blake2b(meant, key=self._key, digest_size=8).hexdigest()
        inside = fingerprint, source.place.conversation
        if not source.is_copy:
            self._reported.add(inside)
        elif inside in self._reported:
            return
        masked = mask(meant.decode("utf-8", "replace"))
        finding = self._report.findings.setdefault(fingerprint, SecretFinding(fingerprint, kind, masked))
        finding.strings.add(secret.decode("utf-8", "surrogateescape"))
        finding.count += 1
        places = [source.place]
        if source.message is not None:
            places = _places_in(source.place, *source.message, secret)
        for place in places:
            if place in finding.places or len(finding.places) < LISTED_PLACES:
                finding.places[place] = None
            else:
                finding.unlisted += 1


def _places_in(whole: SecretPlace, parts: bytes, metadata: bytes, secret: bytes) -> list[SecretPlace]:
    """Return the parts of a message that contain the secret."""
    found: list[SecretPlace] = []
    try:
        values = parts_of(parse_stored(parts))
    except ValueError:  # damaged; `moot verify` reports it
        values = ()
    for index, part in enumerate(values):
        if _contains(part, secret):
            fields = [name for name in ("input", "output") if is_tool(part) and _contains(part.get(name), secret)]
            names = [f"{field} of {tool_name(part)}" for field in fields] or [str(part.get("type"))]
            found += [_in_part(whole, index, name) for name in names]
    return found or [_in_part(whole, None, "metadata" if secret in unescape(metadata) else whole.what)]


def _in_part(whole: SecretPlace, index: int | None, what: str) -> SecretPlace:
    return replace(whole, what=what, part=index)


def _contains(value: Json, secret: bytes) -> bool:
    return secret in unescape(dumps(value))


def _without_secrets(title: str) -> str:
    data = redact(title).encode("utf-8", "surrogateescape")
    for found in reversed(detect(data)):
        data = data[: found.begin] + HIDDEN.encode() + data[found.end :]
    return data.decode("utf-8", "replace")


class StoreScanner:
    """The SQLite implementation of `Scanner`."""

    def __init__(self, writer: Writer, reader: Reader, files: BlobFiles, path: Path) -> None:
        self._writer = writer
        self._reader = reader
        self._files = files
        self._state = path.parent.parent / "state"

    async def scan(self, scope: ScanScope | None = None, *, unchanged: bool = False) -> AsyncGenerator[ScanReport, None]:
        report, within = ScanReport(), scope or ScanScope()
        search = _Search(report, await self._writer.write(_key))
        clean = await self._reader.read(_clean)
        known = {} if unchanged else dict(clean)
        blobs: set[str] = set()
        async for no, id, title, next_seq in self._conversations(within):
            report.conversations += 1
            if known.get(no) == next_seq:
                report.unchanged += 1
                continue
            before = search.detected, search.missed
            async for _ in self._conversation(search, no, SecretPlace("", id, _without_secrets(title)), blobs):
                yield report
            clean.pop(no, None)
            if (search.detected, search.missed) == before:
                clean[no] = next_seq
            yield report
        if within == ScanScope():
            async for _ in self._rest(search, blobs):
                yield report
        await self._writer.write(partial(_put, _CLEAN, {"rules": rules(), "clean": {f"{no}": seq for no, seq in clean.items()}}))
        yield report

    async def _conversations(self, scope: ScanScope) -> AsyncGenerator[tuple[int, str, str, int], None]:
        only: set[int] | None = None
        if (id := scope.conversation) is not None:
            only = set(await self._reader.read(lambda queries: with_children(queries, [id], None)))
        after = min(only) - 1 if only else 0
        while page := await self._reader.rows(_CHOSEN, (after, scope.since, scope.project, scope.agent), tuple[int, str, str, int]):
            for row in page:
                if only is None or row[0] in only:
                    yield row
            after = page[-1][0]

    async def _conversation(self, search: _Search, no: int, place: SecretPlace, blobs: set[str]) -> AsyncGenerator[None, None]:
        """Search one conversation, and add the names of its blobs. Copies are searched last."""
        for pieces in (partial(_messages, search, no, place), partial(_rows, no, place)):
            async for _ in self._search(search, pieces):
                yield
        names, search.blobs = search.blobs, {}
        blobs.update(names)
        for pieces in (partial(self._blobs, search, names, place), partial(_log, search, no, place)):
            async for _ in self._search(search, pieces):
                yield

    async def _rest(self, search: _Search, without: set[str]) -> AsyncGenerator[None, None]:
        """Search everything that doesn't belong to conversations: other tables, other blobs, and files next to the database."""
        async for _ in self._search(search, partial(_rows, None, SecretPlace(""))):
            yield
        names = {name for (name,) in await self._reader.rows("SELECT sha256 FROM blob", (), tuple[str])}
        async for _ in self._search(search, partial(self._blobs, search, dict.fromkeys(names - without, "blob"), SecretPlace(""))):
            yield
        files = await self._reader.call(lambda: sorted(files_in(self._state)))
        async for _ in self._search(search, partial(_files, search, files)):
            yield

    async def _search(self, search: _Search, pieces: _Pieces) -> AsyncGenerator[None, None]:
        after: int | None = 0
        while (after := await self._reader.read(partial(_stretch, search, pieces, after))) is not None:
            yield

    def _blobs(self, search: _Search, names: Mapping[str, str], place: SecretPlace, connection: Connection, after: int) -> Iterator[_Piece]:
        for number, name in enumerate(sorted(names, key=lambda name: (names[name], name))[after:], after + 1):
            row: Any = connection.execute("SELECT data, size FROM blob WHERE sha256 = ?", (name,)).fetchone()
            if row is None:
                continue
            data, size = row
            try:
                head = data[:_HEAD] if data is not None else self._files.read_range(name, size, 0, _HEAD)
                if b"\0" in head or size > LARGEST:
                    continue
                data = data if data is not None else self._files.read_range(name, size, 0, None)
            except StoreError as error:
                search.miss(error.message)
                continue
            yield number, _Source(SecretPlace(names[name], place.conversation, place.title), is_copy=names[name] == "request"), data


def _stretch(search: _Search, pieces: _Pieces, after: int, connection: Connection) -> int | None:
    """Search the next pieces. Return where to continue, or None at the end."""
    size, last = 0, after
    for position, source, data in pieces(connection, after):
        if size >= _STRETCH and position != last:
            search.flush()
            return last
        if source.message is not None:
            search.blobs.update((name.decode(), "attachment") for name in _BLOB.findall(data))
        elif source.place.what == _NAMES["exchange"]:
            search.blobs = {name.decode(): "request" for name in _HASH.findall(data)} | search.blobs
        search.add(source, data)
        size, last = size + len(data), position
    search.flush()
    return None


def _messages(search: _Search, no: int, place: SecretPlace, connection: Connection, after: int) -> Iterator[_Piece]:
    for number, id, role, stored, metadata, at in connection.execute(_MESSAGES, (no, after)):
        try:
            parts = plain(stored)
        except ValueError:
            search.miss(f"The message {id} of the conversation {place.conversation} is damaged.")
            parts = stored
        source = _Source(SecretPlace("message", place.conversation, place.title, id, role, at=at), message=(parts, metadata))
        yield number, source, parts
        yield number, source, metadata
        for found in _TEXT_URL.finditer(parts):
            attachment = base64.b64decode(found[1] + b"=" * (-len(found[1]) % 4))
            yield number, _Source(replace(source.place, what="attachment")), attachment


def _log(search: _Search, no: int, place: SecretPlace, connection: Connection, after: int) -> Iterator[_Piece]:
    for row in log_rows(connection, no, after):
        if not row.check:
            search.miss(f"Events of the conversation {place.conversation} are in a damaged segment.")
        was = before_redaction(row)
        source = _Source(SecretPlace("raw data", place.conversation, place.title, at=row.at // 1000), is_copy=True)
        for data in (row.raw, was.chunks, None if was.kind == "message" else was.body):
            if data and data != b"[]":
                yield row.seq, source, data


def _rows(no: int | None, place: SecretPlace, connection: Connection, after: int) -> Iterator[_Piece]:
    """Yield the texts of all other tables: of one conversation, or of the tables that don't belong to conversations."""
    tables: list[LiteralString] = [
        table for table, each in PLACES.items() if each.words and table not in _LEFT_OUT and (no is None) != bool(each.of)
    ]
    for number, table in enumerate(tables[after:], after + 1):
        words = PLACES[table].words
        source = _Source(SecretPlace(_NAMES.get(table, table.replace("_", " ")), place.conversation, place.title), table == "exchange")
        for row in connection.execute(select(", ".join(words), table, PLACES[table].of or "true"), () if no is None else (no,)):
            for column, value in zip(words, row, strict=True):
                if value:
                    shown = source if column != "title" else _Source(SecretPlace("title", place.conversation, place.title))
                    yield number, shown, value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _files(search: _Search, files: Sequence[Path], connection: Connection, after: int) -> Iterator[_Piece]:
    del connection
    for number, path in enumerate(files[after:], after + 1):
        try:
            data = path.read_bytes() if path.stat().st_size <= LARGEST else b"\0"
        except FileNotFoundError:  # deleted by its process meanwhile
            continue
        except OSError as error:
            search.miss(f"Cannot read {str(path)!r}: {error.strerror}.")
            continue
        if b"\0" not in data[:_HEAD]:
            yield number, _Source(SecretPlace("file", file=str(path))), data


def _key(transaction: Transaction) -> bytes:
    """Return the key of fingerprints, which is created once."""
    found = transaction.row("SELECT value FROM setting WHERE key = ?", (_KEY,))
    if found is not None and isinstance(key := parse_stored(found[0]), str):
        return key.encode()
    key = random.token_hex(16)
    _put(_KEY, key, transaction)
    return key.encode()


def _put(key: str, value: Json, transaction: Transaction) -> None:
    transaction.execute(
        "INSERT INTO setting (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (key, dumps(value))
    )


def _clean(queries: Queries) -> dict[int, int]:
    """Return the conversations in which the same rules found nothing, each with its next seq at that time."""
    row: Any = queries.execute("SELECT value FROM setting WHERE key = ?", (_CLEAN,)).fetchone()
    stored: JsonObject = {} if row is None else parse_stored_object(row[0])
    clean = stored.get("clean")
    if stored.get("rules") != rules() or not isinstance(clean, dict):
        return {}
    return {int(no): seq for no, seq in clean.items() if isinstance(seq, int)}
