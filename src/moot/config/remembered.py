"""What reading and checking a configuration came to, kept for the next process: parsing YAML and checking cost more than a short command.

Both answers are kept by hashes of everything that they depend on, so that a stale one is never found; a file that is broken or that
cannot be written costs time and nothing else. No value of the configuration is in it, but for defaults and numbers: a text is kept as
the place where it stands in the file, so that no secret gets a second home.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

from moot import __version__
from moot.config.secret import is_secret
from moot.config.tree import Node, Place, scalar
from moot.types.canonical import Json, JsonObject, dumps, loads

CHECKED = 4
"""Checked configurations that are kept: environments that take turns."""

_SAME = 0
"""Stands for a text that is in the tree at the same path."""


class Memory:
    """What one home remembers. Nothing is written into a home that does not exist yet."""

    def __init__(self, home: Path) -> None:
        self._path = home / "state" / "config.json"
        self._kept: dict[str, Any] = _load(self._path) or {"salt": secrets.token_hex(16), "tree": None, "checked": []}

    def tree(self, text: str, place: Place, parse: Callable[[], Node]) -> Node:
        """What `parse` makes of the file's text. Raises what it raises."""
        key = self._hash(f"{place.source}\0{text}".encode())
        kept = self._kept["tree"]
        if kept and kept[0] == key:
            return _unpacked(kept[1], text.split("\n"), place)
        node = parse()
        with contextlib.suppress(_Unkept):
            self._kept["tree"] = [key, _packed(node, text.split("\n"), ())]
            self._save()
        return node

    def checked(self, values: Json, check: Callable[[], JsonObject]) -> JsonObject:
        """What `check` makes of the values, which are what it goes by. Raises what it raises."""
        key = self._hash(_code() + dumps(values))
        for kept in self._kept["checked"]:
            if kept[0] == key:
                return cast("JsonObject", _filled(kept[1], values))
        result = check()
        with contextlib.suppress(_Unkept):
            self._kept["checked"] = [[key, _emptied(result, values)], *self._kept["checked"]][:CHECKED]
            self._save()
        return result

    def _hash(self, data: bytes) -> str:
        # salted: the hash of a short secret alone could be guessed
        return blake2b(data, key=bytes.fromhex(self._kept["salt"]), digest_size=20).hexdigest()

    def _save(self) -> None:
        data = dumps(self._kept)
        new = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        with contextlib.suppress(OSError):  # no home yet, a full disk: the next process reads and checks once more
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(f"{_checksum(data)}\n".encode() + data)
            new.replace(self._path)


class _Unkept(Exception):
    """A secret would have to be written down."""


def _load(path: Path) -> dict[str, Any] | None:
    """What was written; None when that is not plainly what is there."""
    try:
        checksum, _, data = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    return cast("dict[str, Any]", loads(data)) if checksum.decode("ascii", "replace") == _checksum(data) else None


def _checksum(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _code() -> bytes:
    """Changes with the code that checks."""
    times = [Path(__file__).with_name(name).stat().st_mtime_ns for name in ("schema.py", "checking.py")]
    return f"{__version__} {times}\0".encode()


def _packed(node: Node, lines: list[str], path: tuple[str | int, ...]) -> Json:
    """A tree with its texts as places in the file. Raises _Unkept when a secret is spelled otherwise than it reads."""
    at: list[Json] = [node.place.line, node.place.column]
    if isinstance(node.value, dict):
        named = {key: child.named or child.place for key, child in node.value.items()}
        return [*at, {key: [named[key].line, named[key].column, _packed(child, lines, (*path, key))] for key, child in node.value.items()}]
    if isinstance(node.value, list):
        return [*at, [_packed(child, lines, (*path, number)) for number, child in enumerate(node.value)]]
    line = lines[node.place.line - 1] if node.place.line <= len(lines) else ""
    for start in (node.place.column - 1, node.place.column):  # the latter behind a quote
        if line[start : start + len(node.text)] == node.text:
            return [*at, node.plain, start, len(node.text)]
    if is_secret(path) or "://" in node.text:
        raise _Unkept
    return [*at, node.plain, node.text]


def _unpacked(packed: Any, lines: list[str], top: Place) -> Node:
    place = Place(top.layer, top.source, packed[0], packed[1])
    value: Any = packed[2]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        named = {key: Place(top.layer, top.source, item[0], item[1]) for key, item in items.items()}
        return Node({key: replace(_unpacked(item[2], lines, top), named=named[key]) for key, item in items.items()}, place)
    if isinstance(value, list):
        return Node([_unpacked(child, lines, top) for child in cast("list[Any]", value)], place)
    text = str(packed[3] if len(packed) == 4 else lines[place.line - 1][packed[3] : packed[3] + packed[4]])
    return Node(scalar(text) if value else text, place, text, bool(value))


def _emptied(result: Json, values: Json) -> Json:
    """The result without the texts that are in the values anyway; every other value stands in a list of its own."""
    if isinstance(result, dict):
        known = values if isinstance(values, dict) else {}
        return {key: _emptied(item, known.get(key)) for key, item in result.items()}
    if isinstance(result, list) and isinstance(values, list) and len(result) == len(values):
        return {"": [_emptied(item, value) for item, value in zip(result, values, strict=True)]}
    if isinstance(result, str) and values is not None:
        if result != values:  # a number that is meant as text: a key made of digits, for instance
            raise _Unkept
        return _SAME
    return [result]


def _filled(emptied: Any, values: Json) -> Json:
    if emptied == _SAME:
        return values
    if isinstance(emptied, list):
        return cast("list[Json]", emptied)[0]
    items = cast("dict[str, Any]", emptied)
    if isinstance(values, list) and set(items) == {""}:
        return [_filled(item, value) for item, value in zip(items[""], values, strict=True)]
    known = values if isinstance(values, dict) else {}
    return {key: _filled(item, known.get(key)) for key, item in items.items()}
