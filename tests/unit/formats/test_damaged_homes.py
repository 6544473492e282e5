"""Homes of other programs with changed values, removed fields and repeated records: readers never fail, and count each call once."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any

import pytest

from conformance.formats import check_conversation
from moot.errors import MootError
from moot.formats.kit.fidelity import steps_of
from moot.formats.kit.fields import obj, whole_number
from moot.formats.kit.unread import read_checked
from moot.imports.sources import Source, local_places, local_sources
from moot.types.format import WholeConversation

STORES = Path(__file__).parents[2] / "recorded" / "stores"
JUNK: list[Any] = [
    *(None, True, -1, -5.5, 1e308, 10**30, float("nan"), "", "\ud800\0", "2026-99-99T00:00:00", "x" * 5000),
    *("a/b", "..", "a\0b", "file://[x"),
    *([], {}, [[[]]], [{}], [None], [1, "a"], {"a": {"b": [1, None]}}),
]
CELLS: list[Any] = [None, -1, 10**15, 1.5, "", "zz", b"\0\xff", "[]", "{}", "[null]", "[[]]"]
SQLITE = b"SQLite format 3\0"
WITHOUT_IDS = ("codex", "claude", "cursor", "gemini", "pi", "prime", "openclaw", "traex", "cowork", "openclaude")
"""Beginnings of the names of homes whose records have no ids, or whose repetitions are found only by the store."""


def changed(value: Any) -> Iterator[Any]:
    """Yield the value with one field removed, or one value replaced by junk."""
    if isinstance(value, dict):
        for key, held in value.items():
            yield {name: one for name, one in value.items() if name != key}
            yield from ({**value, key: one} for one in chain(JUNK, changed(held)))
    elif isinstance(value, list):
        for at, held in enumerate(value):
            yield [*value[:at], held, *value[at:]]
            yield from ([*value[:at], one, *value[at + 1 :]] for one in chain(JUNK, changed(held)))


def values_in(data: bytes) -> list[Any]:
    """Return a JSON document, or the values of JSON Lines, or nothing."""
    for parts in ([data], data.splitlines()):
        with suppress(ValueError):
            return [json.loads(part) for part in parts]
    return []


def written(path: Path, values: Iterable[Any]) -> None:
    path.write_text("".join(json.dumps(one) + "\n" for one in values))


def cells_of(path: Path) -> list[tuple[str, str, int, Any]]:
    """Return table, column, row and value of each cell of a database."""
    with closing(sqlite3.connect(path)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
        names = {table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] for table in tables}
        rows = {table: connection.execute(f"SELECT rowid, * FROM {table}").fetchall() for table in tables}
    return [
        (table, column, row[0], value)
        for table in tables
        for row in rows[table]
        for column, value in zip(names[table], row[1:], strict=True)
    ]


def set_cell(path: Path, cell: tuple[str, str, int, Any], value: Any) -> None:
    table, column, row, _ = cell
    with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.Error):  # the schema may refuse the value
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))
        connection.commit()


def damages(path: Path) -> Iterator[Any]:
    """Yield functions that damage the file in one place."""
    data = path.read_bytes()
    if data.startswith(SQLITE):
        for cell in cells_of(path):
            yield from (partial(set_cell, path, cell, one) for one in CELLS)
            held = values_in(cell[3].encode()) if isinstance(cell[3], str) else []
            for one in changed(held[0]) if len(held) == 1 else ():
                yield partial(set_cell, path, cell, json.dumps(one))
        return
    values = values_in(data)
    for at, value in enumerate(values):
        yield from (partial(written, path, [*values[:at], one, *values[at + 1 :]]) for one in chain(JUNK, changed(value)))


def read(sources: list[Source]) -> list[WholeConversation]:
    found: list[WholeConversation] = []
    for source in sources:
        with suppress(MootError):
            found += [one.whole() for one in read_checked(source.format, source.format.read(source.path))]
    return found


def check(conversations: list[WholeConversation]) -> None:
    for one in conversations:
        check_conversation(one, SQLITE)  # the raw of unchanged sources is compared by the conformance tests
        assert one.conversation.source_id
        assert all(
            part.get(name, "") == str(part.get(name, "")) for message in one.messages for part in message.parts for name in ("text", "url")
        )
        json.dumps([message.metadata for message in one.messages], allow_nan=False)


def spent(conversations: list[WholeConversation]) -> int:
    """Return the number of input tokens."""
    steps = [step for one in conversations for message in one.messages for step in steps_of(message)]
    return sum(whole_number(obj(step, "usage"), "input") or 0 for step in steps)


def staged(name: str, folder: Path) -> tuple[list[Source], list[Path]]:
    home = Path(shutil.copytree(STORES / name, folder / "user"))
    files = [path for path in sorted(home.rglob("*")) if path.is_file() and path.name != "expected.json"]
    return list(local_sources(home, {}, folder / "moot")), files


def check_damages(name: str, folder: Path, some: int | None) -> None:
    sources, files = staged(name, folder)
    makes = [(path, make) for path in files for make in damages(path)]
    for path, damage in random.Random(name).sample(makes, min(some or len(makes), len(makes))):
        before = path.read_bytes()
        damage()
        check(read(sources))
        path.write_bytes(before)


HOMES = sorted(path.name for path in STORES.iterdir())


@pytest.mark.parametrize("name", HOMES)
@pytest.mark.slow
def test_a_damaged_value_never_stops_an_import(name: str, tmp_path: Path) -> None:
    check_damages(name, tmp_path, 15)


@pytest.mark.slow
@pytest.mark.parametrize("name", HOMES)
def test_no_damaged_value_stops_an_import(name: str, tmp_path: Path) -> None:
    check_damages(name, tmp_path, 150)


@pytest.mark.parametrize("name", ["amp", "claude-subagent"])
def test_text_that_is_neither_a_path_nor_an_address_never_stops_an_import(name: str, tmp_path: Path) -> None:
    sources, files = staged(name, tmp_path)
    for path in files:
        before = path.read_text()
        for key, junk in product(("uri", "cwd", "sessionId"), ("a/b", "a\0b", "file://[x")):
            path.write_text(re.sub(rf'("{key}": ?)"[^"]*"', lambda found, junk=junk: found[1] + json.dumps(junk), before))
            assert read(sources)
        path.write_text(before)


BROKEN = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[: len(data) * 2 // 3],
    "NULs": lambda data: data[: len(data) // 2] + bytes(4096) + data[len(data) // 2 :],
    "nested": lambda data: data + b'{"a":[' * 50_000,
    "no UTF-8": lambda data: data.replace(b"e", b"\xff", 5),
}


@pytest.mark.parametrize("name", HOMES)
def test_a_broken_file_never_stops_an_import(name: str, tmp_path: Path) -> None:
    sources, files = staged(name, tmp_path)
    for path in files:
        before = path.read_bytes()
        for broken in BROKEN.values():
            path.write_bytes(broken(before))
            check(read(sources))
        path.write_bytes(before)


@pytest.mark.parametrize("name", HOMES)
def test_links_pipes_and_folders_in_place_of_files_are_not_opened(name: str, tmp_path: Path) -> None:
    _, files = staged(name, tmp_path)
    outside = tmp_path / "outside"
    databases = {location.place for location in local_places(tmp_path / "user", {}) if location.format.name != "aider"}
    for number, path in enumerate(path for path in files if path not in databases):  # a link to a whole database is followed
        outside.write_bytes(path.read_bytes())
        path.unlink()
        if number % 4 == 0:
            path.symlink_to(outside)
        elif number % 4 == 1:
            os.mkfifo(path)
        elif number % 4 == 2:
            path.symlink_to("/dev/zero")
        else:
            path.mkdir()
    sources = [one for one in local_sources(tmp_path / "user", {}, tmp_path / "moot") if one.path not in databases]
    assert not [message for one in read(sources) for message in one.messages]


@pytest.mark.parametrize("name", [name for name in HOMES if not name.startswith(WITHOUT_IDS)])
def test_a_repeated_record_is_counted_once(name: str, tmp_path: Path) -> None:
    sources, files = staged(name, tmp_path)
    tokens = spent(read(sources))
    for path in files:
        before = path.read_bytes()
        values = [] if before.startswith(SQLITE) else values_in(before)
        members = values[0].values() if len(values) == 1 and isinstance(values[0], dict) else ()
        lists = [one for one in (values if len(values) > 1 else None, *values[:1], *members) if isinstance(one, list)]
        for one in lists:
            for at in range(len(one)):
                one.insert(at, one[at])
                written(path, values)
                one.pop(at)
                assert spent(read(sources)) == tokens, (path.name, at)
        path.write_bytes(before)
