"""Parsing of YAML text into a tree with source positions. Tags, duplicate keys and alias bombs are rejected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, DocumentStartEvent, ScalarEvent, SequenceStartEvent

from moot.config.tree import Node, Place, scalar
from moot.errors import ConfigError

MAX_DEPTH = 40
MAX_NODES = 50_000
"""Values in one file. An alias counts as many times as the value it refers to."""


def parse(text: str, place: Place) -> Node:
    """Return the tree of a YAML document, which must be a mapping. Raise ConfigError with line and column."""
    try:
        node = _Builder(text, place).document()
    except MarkedYAMLError as error:
        mark = cast("Any", error).problem_mark
        words = str(cast("Any", error).problem or error)
        line, column = (int(mark.line), int(mark.column)) if mark else (-1, -1)
        unquoted = column > 0 and text.split("\n")[line][column - 1 : column + 1] == "${"
        fix = "Quote ${…} inside braces and brackets." if unquoted else ""
        raise _error(words, place, line + 1, column + 1, fix) from error
    except YAMLError as error:  # a forbidden character; its position counts from the start of the text
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


def _error(message: str, place: Place, line: int, column: int, fix: str = "") -> ConfigError:
    return ConfigError(message, file=place.source, line=line, column=column, fix=fix)


class _Builder:
    """Builds the tree from parser events, so that alias bombs are rejected before they expand."""

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
            raise self._refuse("only one document per file is allowed; remove the '---'", extra)
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
                raise self._refuse(f"duplicate key {name!r}", event)
            child = self._node(next(self._events), depth + 1)
            items[name] = replace(child, named=self._at(event))
        return Node(items, self._at(start), size=1 + sum(item.size for item in items.values()))

    def _key(self, event: Any) -> str:
        if not isinstance(event, ScalarEvent):
            raise self._refuse("a key must be a scalar", event)
        key = cast("Any", event)
        if key.tag is not None:
            raise self._refuse(f"tags are not allowed: {key.tag}", event)
        return str(key.value)

    def _alias(self, event: Any) -> Node:
        node = self._anchors.get(event.anchor)
        if node is None:
            raise self._refuse(f"undefined anchor {event.anchor!r}", event)
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
