"""Where two JSON values differ, for a person to read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from moot.types.canonical import Json, dumps

__all__ = ["Difference", "differences", "first_difference", "short"]

_LONG = 160
"""Characters of a value that are shown."""


class Difference(NamedTuple):
    where: str
    """A path such as `[3].output.stdout`; empty = the whole value."""
    expected: str
    found: str


def first_difference(expected: Json, found: Json) -> Difference | None:
    """None when they are the same to the letter; the order of an object's fields says nothing."""
    return next(differences(expected, found), None)


def differences(expected: Json, found: Json, where: str = "") -> Iterator[Difference]:
    """Each place at which they differ, in order. `1` is not `true` and not `1.0`."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in dict.fromkeys((*expected, *found)):
            path = f"{where}.{name}" if where else name
            if name not in found:
                yield Difference(path, short(expected[name]), "nothing")
            elif name not in expected:
                yield Difference(path, "nothing", short(found[name]))
            else:
                yield from differences(expected[name], found[name], path)
    elif isinstance(expected, list) and isinstance(found, list):
        for index, (left, right) in enumerate(zip(expected, found, strict=False)):
            yield from differences(left, right, f"{where}[{index}]")
        shorter = min(len(expected), len(found))
        for index, value in enumerate(islice(expected, shorter, None), shorter):
            yield Difference(f"{where}[{index}]", short(value), "nothing")
        for index, value in enumerate(islice(found, shorter, None), shorter):
            yield Difference(f"{where}[{index}]", "nothing", short(value))
    elif type(expected) is not type(found) or expected != found:
        yield _apart(expected, found, where)


def _apart(expected: Json, found: Json, where: str) -> Difference:
    """Of two long texts only what is around the first letter that differs."""
    if isinstance(expected, str) and isinstance(found, str) and max(len(expected), len(found)) > _LONG:
        same = next((at for at, (left, right) in enumerate(zip(expected, found, strict=False)) if left != right), None)
        at = min(len(expected), len(found)) if same is None else same
        begin = max(0, at - _LONG // 4)
        mark = f" from letter {begin}" if begin else ""
        return Difference(where, short(expected[begin : begin + _LONG]) + mark, short(found[begin : begin + _LONG]) + mark)
    return Difference(where, short(expected), short(found))


def short(value: Json) -> str:
    """The value as JSON, with the end left out where it is long."""
    text = dumps(value).decode()
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"
