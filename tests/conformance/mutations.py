"""Changed records for readers: renamed keys, values of other types, and unknown types. What a reader then leaves out must be reported."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from conformance.formats import source
from moot.errors import MootError
from moot.formats.kit.fidelity import things_in
from moot.formats.kit.unread import read_checked
from moot.types.format import Format, ImportedRecord, Sample, WholeConversation
from moot.types.imports import Recorder, Recording

_WORD = "zq-unknown"
"""Name of a key or a type that no program uses."""
_SQLITE = b"SQLite format 3"
_KINDS = ("type", "role", "kind", "sender")
"""Names of fields and columns that say what a record is."""
_LEAST = 3
"""Length from which a string counts as content."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change of a sample, with a description for the failure."""

    name: str
    sample: Sample
    strings: frozenset[str]
    """The strings that the changed sample still contains."""


Make: TypeAlias = Callable[[], Mutation]
"""A function that makes a mutation, so that only the selected ones are made."""


def mutations(sample: Sample, folder: Path) -> Iterator[Make]:
    """Yield a function for each change of one place in the sample."""
    if isinstance(sample, bytes):
        yield from _changed(sample, folder)
        return
    for file, content in sample.items():
        rest = frozenset(text for name, data in sample.items() if name != file for text in _strings_in(data))
        for make in _changed(content, folder):
            yield partial(_in_folder, make, sample, file, rest)


def _in_folder(make: Make, sample: Mapping[str, bytes], file: str, rest: frozenset[str]) -> Mutation:
    made = make()
    assert isinstance(made.sample, bytes)
    return Mutation(f"{file}: {made.name}", {**sample, file: made.sample}, made.strings | rest)


def _changed(data: bytes, folder: Path) -> Iterator[Make]:
    if data.startswith(_SQLITE):
        yield from _changed_database(data, folder)
        return
    values = _values(data)
    if values is None:
        return
    lined = len(values) > 1 or (data.count(b"\n") <= 1 and data.endswith(b"\n"))
    for number, value in enumerate(values):
        for name, changed in _changes(value):
            yield partial(_record, f"record {number + 1}: {name}", [*values[:number], changed, *values[number + 1 :]], lined)


def _record(name: str, values: list[Any], lined: bool) -> Mutation:
    text = "\n".join(json.dumps(one, ensure_ascii=False) for one in values) + ("\n" if lined else "")
    return Mutation(name, text.encode(), frozenset(_leaves(values)))


def _changed_database(data: bytes, folder: Path) -> Iterator[Make]:
    path = folder / "changed.sqlite"
    path.write_bytes(data)
    cells: list[tuple[str, int, str, Any]] = []
    with sqlite3.connect(path) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
        for table in tables:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            for rowid, *row in connection.execute(f"SELECT rowid, * FROM {table}"):
                cells += [(table, rowid, column, value) for column, value in zip(columns, row, strict=True) if isinstance(value, str)]
    connection.close()
    if not any(isinstance(_parsed(cell[3]), dict | list) or cell[2] in _KINDS for cell in cells):
        columns = sorted({(table, column) for table, _, column, value in cells if len(value) >= _LEAST})
        for table, column in columns:
            yield partial(_column, f"{table}.{column} renamed", (data, path), (table, column), [cell[3] for cell in cells])
    for at, (table, rowid, column, value) in enumerate(cells):
        changes: list[tuple[str, str]] = [("unknown", _WORD)] if column in _KINDS else []
        try:
            parsed = json.loads(value)
        except ValueError:
            parsed = None
        if isinstance(parsed, dict | list):
            changes = [(name, json.dumps(changed, ensure_ascii=False)) for name, changed in _changes(parsed)]
        rest = [cell[3] for number, cell in enumerate(cells) if number != at]
        for name, changed in changes:
            yield partial(_cell, f"{table} {rowid} {column}: {name}", (data, path), (table, rowid, column, changed), rest)


def _cell(name: str, file: tuple[bytes, Path], cell: tuple[str, int, str, str], rest: list[str]) -> Mutation:
    data, path = file
    table, rowid, column, changed = cell
    path.write_bytes(data)
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (changed, rowid))
    connection.close()
    return Mutation(name, path.read_bytes(), frozenset(_leaves([*map(_parsed, rest), _parsed(changed)])))


def _column(name: str, file: tuple[bytes, Path], column: tuple[str, str], cells: list[str]) -> Mutation:
    data, path = file
    path.write_bytes(data)
    with sqlite3.connect(path) as connection:
        connection.execute(f'ALTER TABLE {column[0]} RENAME COLUMN {column[1]} TO "{_WORD}"')
    connection.close()
    return Mutation(name, path.read_bytes(), frozenset(_leaves([*map(_parsed, cells)])))


def _parsed(cell: str) -> Any:
    try:
        return json.loads(cell)
    except ValueError:
        return cell


def _strings_in(data: bytes) -> set[str]:
    values = None if data.startswith(_SQLITE) else _values(data)
    return set(_leaves(values)) if values is not None else set()


def _values(data: bytes) -> list[Any] | None:
    """Return the JSON values of a document or of JSON Lines, or None if it is neither."""
    try:
        return [json.loads(data)]
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in data.splitlines() if line.strip()] or None
    except ValueError:
        return None


def _changes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the value with one key renamed, one value of another type, or one unknown type."""
    if isinstance(value, dict):
        for key, held in value.items():
            yield f"{key!r} renamed", {(_WORD if name == key else name): one for name, one in value.items()}
            yield f"{key!r} as {type(_other(held)).__name__}", {**value, key: _other(held)}
            if key in _KINDS and isinstance(held, str):
                yield f"{key!r} unknown", {**value, key: _WORD}
            for name, changed in _changes(held):
                yield f"{key}.{name}", {**value, key: changed}
    elif isinstance(value, list):
        for at, held in enumerate(value):
            for name, changed in _changes(held):
                yield f"{at}.{name}", [*value[:at], changed, *value[at + 1 :]]


def _other(value: Any) -> Any:
    """Return the value inside one of another type, so that its text is still there."""
    return [value] if isinstance(value, dict) else {_WORD: value}


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _leaves(one)
    elif isinstance(value, list):
        for one in value:
            yield from _leaves(one)


def content_strings(read: list[WholeConversation]) -> set[str]:
    """Return the strings in the parts of messages, as stored."""
    found: set[str] = set()
    for conversation in read:
        for message in conversation.messages:
            for part in message.parts:
                for name in ("text", "input", "output", "errorText", "data", "url", "filename"):
                    found.update(text for text in _leaves(part.get(name)) if len(text) >= _LEAST and not text.startswith("data:"))
    return found


def check_mutation(format: Format, folder: Path, original: list[WholeConversation], mutation: Mutation) -> str:
    """Return a description of content that was left out without a report, or an empty string."""
    path = source(format, folder, mutation.sample)
    try:
        read = [one.whole() for one in read_checked(format, format.read(path))]
    except MootError:
        return ""
    for conversation in read:
        counted = conversation.fidelity.kept.get("messages", 0) + conversation.fidelity.approximated.get("messages", 0)
        there = sum("messages" in set(things_in(message)) for message in conversation.messages)
        if counted > there:
            return f"{mutation.name}: {counted} messages are counted, and {there} are there"
    held: list[Any] = [[list(message.parts), message.metadata] for one in read for message in one.messages]
    bodies = [entry.body for one in read for entry in one.entries if isinstance(entry, ImportedRecord) and isinstance(entry.body, dict)]
    held += [value for body in bodies for value in body.values() if isinstance(value, str)]  # a field next to the messages
    whole = json.dumps(held, ensure_ascii=False)
    gone = {text for text in content_strings(original) & mutation.strings if json.dumps(text, ensure_ascii=False)[1:-1] not in whole}
    if gone and _reported(read) <= _reported(original):
        return f"{mutation.name}: {sorted(gone)[:3]} left out"
    return ""


def check_recording(format: Recorder, folder: Path, original: list[Recording], mutation: Mutation) -> str:
    """Return a description of content of a recording that was left out without a report, or an empty string."""
    path = source(format, folder, mutation.sample)
    try:
        read = list(format.recordings(path))
    except MootError:
        return ""
    held, before = _texts_of(read), _texts_of(original)
    empty = [message.id for one in read for message in one.messages if not message.parts]
    gone = (before & mutation.strings) - held
    if (gone or empty) and not any(one.fidelity.lost for one in read):
        return f"{mutation.name}: {sorted(gone)[:3]} left out, {len(empty)} messages are empty"
    return ""


def _texts_of(recordings: list[Recording]) -> set[str]:
    return {text for one in recordings for message in one.messages for text in _leaves(list(message.parts))}


def _reported(read: list[WholeConversation]) -> int:
    return sum(sum(one.fidelity.lost.values()) for one in read)
