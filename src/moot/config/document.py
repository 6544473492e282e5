"""YAML text to a tree that knows where each value stands: no tags, no duplicate keys, no bombs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, DocumentStartEvent, ScalarEvent, SequenceStartEvent

from moot.errors import ConfigError
from moot.types.canonical import Json

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 40
MAX_NODES = 50_000
"""Values in one file, with each alias counted as all that it stands for."""

Scalar: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value was written."""

    layer: str
    """user | project | environment | flags"""
    source: str
    """The file, or the variable's name."""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return " ".join(filter(None, (self.layer, ":".join(str(part) for part in (self.source, self.line, self.column) if part))))


@dataclass(frozen=True, slots=True)
class Node:
    """One value, its place, and for a scalar its own spelling."""

    value: Scalar | list[Node] | dict[str, Node]
    place: Place
    text: str = ""
    plain: bool = False
    """Unquoted, so that what `${VAR}` brings may be a number."""
    named: Place | None = None
    """Where its key stands; None = it has none."""
    from_variable: bool = False
    """Whether `${VAR}` made it."""
    size: int = field(default=1, compare=False)


def read(path: Path, layer: str) -> Node:
    """The tree of a file; an empty mapping when it does not exist. Raises ConfigError."""
    place = Place(layer, str(path))
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return Node({}, place)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(path), fix=f"Make {path} a readable file.") from error
    if len(data) > MAX_BYTES:
        raise ConfigError(f"larger than {MAX_BYTES // 1024} KiB; that is no configuration", file=str(path))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise ConfigError("not UTF-8", file=str(path), line=line, column=column, fix="Save the file as UTF-8.") from error
    return parse(text, place)


def parse(text: str, place: Place) -> Node:
    """The tree of a YAML document, whose top must be a mapping. Raises ConfigError with line and column."""
    try:
        node = _Builder(text, place).document()
    except MarkedYAMLError as error:
        mark = cast("Any", error).problem_mark
        words = str(cast("Any", error).problem or error)
        line, column = (int(mark.line), int(mark.column)) if mark else (-1, -1)
        unquoted = column > 0 and text.split("\n")[line][column - 1 : column + 1] == "${"
        fix = "Between braces and brackets, ${…} needs quotes around it." if unquoted else ""
        raise _error(words, place, line + 1, column + 1, fix) from error
    except YAMLError as error:  # a character that YAML forbids; its mark counts characters of the whole text
        position = cast("int", getattr(error, "position", 0))
        before = text[:position]
        raise _error(
            f"character {text[position : position + 1]!r} is not allowed", place, before.count("\n") + 1, position - before.rfind("\n")
        ) from error
    if node is None or node.value is None:
        return Node({}, place)
    if not isinstance(node.value, dict):
        raise _error("expected a mapping of keys to values", place, node.place.line, node.place.column)
    return node


def scalar(text: str) -> Scalar:
    """What an unquoted scalar stands for in YAML 1.2; integers beyond 18 digits stay text."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= 19 and _INTEGER.fullmatch(text):
        return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
    if len(text) <= 40 and _FLOAT.fullmatch(text):
        return float(text)
    return text


def plain(node: Node) -> Json:
    """The values alone, without what is null: a null means that nothing is set."""
    if isinstance(node.value, dict):
        return {key: plain(child) for key, child in node.value.items() if child.value is not None}
    if isinstance(node.value, list):
        return [plain(child) for child in node.value]
    return node.value


def find(node: Node, *path: str) -> Scalar | list[Node] | dict[str, Node]:
    """The value at a path of keys; None when there is none."""
    for key in path:
        if not isinstance(node.value, dict) or key not in node.value:
            return None
        node = node.value[key]
    return node.value


_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?")


def _error(message: str, place: Place, line: int, column: int, fix: str = "") -> ConfigError:
    return ConfigError(message, file=place.source, line=line, column=column, fix=fix)


class _Builder:
    """Reads parser events as they come, so that a bomb is refused before it is unpacked."""

    def __init__(self, text: str, place: Place) -> None:
        self._events: Iterator[Any] = iter(cast("Any", YAML(typ="safe", pure=True)).parse(text))
        self._place = place
        self._anchors: dict[str, Node] = {}
        self._nodes = 0

    def document(self) -> Node | None:
        next(self._events)
        first = next(self._events)
        if not isinstance(first, DocumentStartEvent):
            return None
        node = self._node(next(self._events), 0)
        next(self._events)
        extra = next(self._events)
        if isinstance(extra, DocumentStartEvent):
            raise self._refuse("one document to a file; remove the '---'", extra)
        return node

    def _node(self, event: Any, depth: int) -> Node:
        if isinstance(event, AliasEvent):
            return self._alias(event)
        if event.tag is not None:
            raise self._refuse(f"tags are not allowed: {event.tag}", event)
        if depth > MAX_DEPTH:
            raise self._refuse(f"nested deeper than {MAX_DEPTH} levels", event)
        self._count(1, event)
        node = self._unpack(event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _unpack(self, event: Any, depth: int) -> Node:
        if isinstance(event, ScalarEvent):
            return self._scalar(event)
        if isinstance(event, SequenceStartEvent):
            return self._sequence(event, depth)
        return self._mapping(event, depth)

    def _scalar(self, event: Any) -> Node:
        text: str = event.value
        is_plain = bool(event.implicit[0])
        return Node(scalar(text) if is_plain else text, self._at(event), text, is_plain)

    def _sequence(self, start: Any, depth: int) -> Node:
        items: list[Node] = []
        while (event := next(self._events)) and not _ends(event):
            items.append(self._node(event, depth + 1))
        return Node(items, self._at(start), size=1 + sum(item.size for item in items))

    def _mapping(self, start: Any, depth: int) -> Node:
        items: dict[str, Node] = {}
        while (event := next(self._events)) and not _ends(event):
            name = self._key(event)
            if name in items:
                raise self._refuse(f"the key {name!r} is here twice", event)
            child = self._node(next(self._events), depth + 1)
            items[name] = replace(child, named=self._at(event))
        return Node(items, self._at(start), size=1 + sum(item.size for item in items.values()))

    def _key(self, event: Any) -> str:
        if not isinstance(event, ScalarEvent):
            raise self._refuse("a key must be a word", event)
        key = cast("Any", event)
        if key.tag is not None:
            raise self._refuse(f"tags are not allowed: {key.tag}", event)
        return str(key.value)

    def _alias(self, event: Any) -> Node:
        node = self._anchors.get(event.anchor)
        if node is None:
            raise self._refuse(f"no anchor named {event.anchor!r} stands before", event)
        self._count(node.size, event)
        return node

    def _count(self, nodes: int, event: Any) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise self._refuse(f"more than {MAX_NODES} values", event)

    def _at(self, event: Any) -> Place:
        return Place(self._place.layer, self._place.source, event.start_mark.line + 1, event.start_mark.column + 1)

    def _refuse(self, message: str, event: Any) -> ConfigError:
        at = self._at(event)
        return _error(message, self._place, at.line, at.column)


def _ends(event: Any) -> bool:
    return type(event).__name__ in ("SequenceEndEvent", "MappingEndEvent")
