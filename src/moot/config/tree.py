"""Configuration values with the place where they were written, before validation."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias

from moot.types.canonical import Json

Scalar: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Place:
    """The place where a value was written."""

    layer: str
    """user | project | environment | flags"""
    source: str
    """The file, or the name of the variable or flag."""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return " ".join(filter(None, (self.layer, ":".join(str(part) for part in (self.source, self.line, self.column) if part))))


@dataclass(frozen=True, slots=True)
class Node:
    """A value with its place, and for a scalar its original spelling."""

    value: Scalar | list[Node] | dict[str, Node]
    place: Place
    text: str = ""
    plain: bool = False
    """Unquoted, so that the value of `${VAR}` may become a number."""
    named: Place | None = None
    """The place of its key; None = it has no key."""
    from_variable: bool = False
    """True if the value contains a resolved `${VAR}`."""
    size: int = field(default=1, compare=False)


def scalar(text: str) -> Scalar:
    """Return the value of an unquoted YAML 1.2 scalar. Integers with more than 18 digits stay text."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= 19 and _INTEGER.fullmatch(text):
        return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
    if len(text) <= 40 and _FLOAT.fullmatch(text):
        return float(text)
    return text


def plain(node: Node) -> Json:
    """Return the values without places. Keys whose value is null are left out, because null means unset."""
    if isinstance(node.value, dict):
        return {key: plain(child) for key, child in node.value.items() if child.value is not None}
    if isinstance(node.value, list):
        return [plain(child) for child in node.value]
    return node.value


def find(node: Node, *path: str) -> Scalar | list[Node] | dict[str, Node]:
    """Return the value at a path of keys, or None."""
    for key in path:
        if not isinstance(node.value, dict) or key not in node.value:
            return None
        node = node.value[key]
    return node.value


def place_of(root: Node, path: tuple[str | int, ...], *, key: bool = False) -> Place:
    """Return the place of the value at a path (or of its key), or of the closest parent that exists."""
    node = root
    for step in path:
        if isinstance(node.value, dict) and step in node.value:
            node = node.value[str(step)]
        elif isinstance(node.value, list) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
        else:
            break
    block = isinstance(node.value, dict | list)  # a block may start on the line after its key
    return node.named if node.named is not None and (key or block) else node.place


_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?")
