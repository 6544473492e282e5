"""Cache of parsed and validated configurations, because parsing and validating YAML takes longer than a short command.

The key of an entry is a hash of everything that the entry depends on, so a stale entry is never used. If the cache file is damaged or
can't be written, loading is slower but still works. The cache contains only defaults and numbers. Texts are stored as positions in the
configuration file, so that secrets are not copied.
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
from moot.config.secrets import is_secret
from moot.config.tree import Node, Place, scalar
from moot.plugins.registry import attribute
from moot.types.canonical import Json, JsonObject, dumps, loads

CHECKED = 4
"""Number of validated configurations to keep. There are several if environment variables differ between commands."""

PARTS = 200
"""Number of parsed files to keep in addition to `config.yaml`."""

_HERE = Path(__file__).parent
_CODE = ("validation.py", "schema/__init__.py", "schema/basics.py", "schema/definitions.py")
"""The source files that define which configurations are valid."""

_SAME = 0  # represents a text that the tree contains at the same path


class Memory:
    """The cache in one home folder. Nothing is written if the folder does not exist yet."""

    def __init__(self, home: Path) -> None:
        self._path = home / "state" / "config.json"
        self._cache: dict[str, Any] = {"salt": secrets.token_hex(16), "tree": None, "checked": []}
        with contextlib.suppress(OSError):
            checksum, _, data = self._path.read_bytes().partition(b"\n")
            if checksum.decode("ascii", "replace") == _checksum(data):
                self._cache = cast("dict[str, Any]", loads(data))

    @property
    def knows_file(self) -> bool:
        """True if the configuration file had any content when it was last read."""
        return bool(self._cache["tree"])

    def forget_file(self) -> None:
        """Remember that the configuration file has no content."""
        self._cache["tree"] = None
        self._save()

    def tree(self, text: str, place: Place, parse: Callable[[], Node]) -> Node:
        """Return the parsed configuration file from the cache, or call `parse` if it is not cached."""
        key = self._hash(f"{place.source}\0{text}".encode())
        cached = self._cache["tree"]
        if cached and cached[0] == key:
            return _unpacked(cached[1], text.split("\n"), place)
        node = parse()
        with contextlib.suppress(_NotCacheable):
            self._cache["tree"] = [key, _packed(node, text.split("\n"), ())]
            self._save()
        return node

    def part(self, text: str, place: Place) -> Node:
        """Return the parsed YAML of a file other than `config.yaml`, such as an agent's file. The newest results are cached."""
        parts = cast("dict[str, Any]", self._cache.setdefault("parts", {}))
        key = self._hash(f"{place.source}\0{text}".encode())
        if key in parts:
            return _unpacked(parts[key], text.split("\n"), place)
        node = cast("Node", attribute("moot.config.document:parse")(text, place))
        with contextlib.suppress(_NotCacheable):
            self._cache["parts"] = {key: _packed(node, text.split("\n"), ()), **dict([*parts.items()][: PARTS - 1])}
            self._save()
        return node

    def checked(self, values: Json, check: Callable[[], JsonObject]) -> JsonObject:
        """Return the validated values from the cache, or call `check` if they are not cached."""
        times = [(_HERE / name).stat().st_mtime_ns for name in _CODE]
        key = self._hash(f"{__version__} {times}\0".encode() + dumps(values))
        for cached in self._cache["checked"]:
            if cached[0] == key:
                return cast("JsonObject", _filled(cached[1], values))
        result = check()
        with contextlib.suppress(_NotCacheable):
            self._cache["checked"] = [[key, _emptied(result, values)], *self._cache["checked"]][:CHECKED]
            self._save()
        return result

    def _hash(self, data: bytes) -> str:
        # salted, because a short secret could be found from its unsalted hash
        return blake2b(data, key=bytes.fromhex(self._cache["salt"]), digest_size=20).hexdigest()

    def _save(self) -> None:
        data = dumps(self._cache)
        new = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        with contextlib.suppress(OSError):  # no home yet, or a full disk: the next process parses and validates again
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(f"{_checksum(data)}\n".encode() + data)
            new.replace(self._path)


class _NotCacheable(Exception):
    """Raised if caching would write a secret to disk."""


def _checksum(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _packed(node: Node, lines: list[str], path: tuple[str | int, ...]) -> Json:
    """Return the tree with texts replaced by their positions in the file. Raise _NotCacheable if a secret can't be stored as a position."""
    at: list[Json] = [node.place.line, node.place.column]
    if isinstance(node.value, dict):
        named = {key: child.named or child.place for key, child in node.value.items()}
        return [*at, {key: [named[key].line, named[key].column, _packed(child, lines, (*path, key))] for key, child in node.value.items()}]
    if isinstance(node.value, list):
        return [*at, [_packed(child, lines, (*path, number)) for number, child in enumerate(node.value)]]
    line = lines[node.place.line - 1] if node.place.line <= len(lines) else ""
    for start in (node.place.column - 1, node.place.column):  # the second position is after a quote
        if line[start : start + len(node.text)] == node.text:
            return [*at, node.plain, start, len(node.text)]
    if is_secret(path) or "://" in node.text:
        raise _NotCacheable
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
    """Return the validated result without the texts that are also in its input. Every other value is wrapped in a list."""
    if isinstance(result, dict):
        known = values if isinstance(values, dict) else {}
        return {key: _emptied(item, known.get(key)) for key, item in result.items()}
    if isinstance(result, list) and isinstance(values, list) and len(result) == len(values):
        return {"": [_emptied(item, value) for item, value in zip(result, values, strict=True)]}
    if isinstance(result, str) and values is not None:
        if result != values:  # a number used as text, such as a key made of digits
            raise _NotCacheable
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
