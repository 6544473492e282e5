"""Parse YAML text into a tree with source positions. Tags, duplicate keys and alias bombs are rejected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, DocumentStartEvent, ScalarEvent, SequenceStartEvent

from moot.config.tree import Node, Place, plain, scalar
from moot.types.canonical import Json

MAX_DEPTH = 40
MAX_NODES = 50_000
"""Maximum number of values in one file. An alias counts as all the values that it refers to."""


def parse(text: str, place: Place) -> Node:
    """Return the tree of a YAML document, which must be a mapping. Raise ConfigError, with line and column, if the document is invalid."""
    node = _tree(text, place)
    if node is None or node.value is None:
        return Node({}, place)
    if not isinstance(node.value, dict):
        raise node.place.error("Expected a mapping of keys to values.")
    return node


def parse_value(text: str, name: str) -> Json:
    """Parse the value of the key `name`, as typed on a command line: a list, mapping or quoted text as in YAML, or an unquoted scalar.

    Raise ConfigError if the value is not valid YAML.
    """
    if not text.lstrip().startswith(("[", "{", '"', "'")):
        return scalar(text)
    node = _tree(text, Place("flags", name))
    return None if node is None else plain(node)


def _tree(text: str, place: Place) -> Node | None:
    try:
        node = _Builder(text, place).document()
    except MarkedYAMLError as error:
        mark = cast("Any", error).problem_mark
        words = str(cast("Any", error).problem or error)
        line, column = (int(mark.line), int(mark.column)) if mark else (-1, -1)
        unquoted = column > 0 and text.split("\n")[line][column - 1 : column + 1] == "${"
        fix = "Quote ${…} inside braces and brackets." if unquoted else ""
        words = words[:1].upper() + words[1:]
        raise replace(place, line=line + 1, column=column + 1).error(f"{words}.", fix) from error
    except YAMLError as error:  # a forbidden character, whose position is relative to the start of the text
        position = cast("int", getattr(error, "position", 0))
        before = text[:position]
        at = replace(place, line=before.count("\n") + 1, column=position - before.rfind("\n"))
        raise at.error(f"The character {text[position : position + 1]!r} is not allowed.") from error
    return node


class _Builder:
    """Builder of the tree. It reads parser events, so that alias bombs are rejected before they expand."""

    def __init__(self, text: str, place: Place) -> None:
        self._events: Iterator[Any] = iter(cast("Any", YAML(typ="safe", pure=True)).parse(text))
        self._place = place
        self._anchors: dict[str, Node] = {}
        self._nodes = 0

    def document(self) -> Node | None:
        next(self._events)
        if not isinstance(next(self._events), DocumentStartEvent):
            return None
        node = self._node(next(self._events), 0)
        next(self._events)
        extra = next(self._events)
        if isinstance(extra, DocumentStartEvent):
            raise self._at(extra).error("Only one document per file is allowed.", "Remove the '---'.")
        return node

    def _node(self, event: Any, depth: int) -> Node:
        if isinstance(event, AliasEvent):
            anchor = str(cast("Any", event).anchor)
            if anchor not in self._anchors:
                raise self._at(event).error(f"The anchor {anchor!r} is not defined.")
            node = self._anchors[anchor]
            self._count(node.size, event)
            return node
        self._refuse_tag(event)
        if depth > MAX_DEPTH:
            raise self._at(event).error(f"The value is nested deeper than {MAX_DEPTH} levels.")
        self._count(1, event)
        if isinstance(event, ScalarEvent):
            text, is_plain = str(cast("Any", event).value), bool(cast("Any", event).implicit[0])
            node = Node(scalar(text) if is_plain else text, self._at(event), text, is_plain)
        else:
            node = self._sequence(event, depth) if isinstance(event, SequenceStartEvent) else self._mapping(event, depth)
        if (anchor := cast("Any", event).anchor) is not None:
            self._anchors[anchor] = node
        return node

    def _sequence(self, start: Any, depth: int) -> Node:
        items: list[Node] = []
        while (event := next(self._events)) and not _ends(event):
            items.append(self._node(event, depth + 1))
        return Node(items, self._at(start), size=1 + sum(item.size for item in items))

    def _mapping(self, start: Any, depth: int) -> Node:
        items: dict[str, Node] = {}
        while (event := next(self._events)) and not _ends(event):
            if not isinstance(event, ScalarEvent):
                raise self._at(event).error("A key must be a scalar.")
            self._refuse_tag(event)
            name = str(cast("Any", event).value)
            if name in items:
                raise self._at(event).error(f"The key {name!r} occurs twice.")
            child = self._node(next(self._events), depth + 1)
            items[name] = replace(child, named=self._at(event))
        return Node(items, self._at(start), size=1 + sum(item.size for item in items.values()))

    def _refuse_tag(self, event: Any) -> None:
        if event.tag is not None:
            raise self._at(event).error(f"Tags such as {event.tag} are not allowed.")

    def _count(self, nodes: int, event: Any) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise self._at(event).error(f"The file has more than {MAX_NODES} values.")

    def _at(self, event: Any) -> Place:
        return Place(self._place.layer, self._place.source, event.start_mark.line + 1, event.start_mark.column + 1)


def _ends(event: Any) -> bool:
    return type(event).__name__ in ("SequenceEndEvent", "MappingEndEvent")
