"""Differences between two JSON values, in readable form."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from moot.types.canonical import Json, dumps

_LONG = 160
"""Maximum length of a value that is shown."""


class Difference(NamedTuple):
    where: str
    """A path such as `[3].output.stdout`; empty for the whole value."""
    expected: str
    found: str


def first_difference(expected: Json, found: Json) -> Difference | None:
    """Return the first difference, or None if the values are identical. The order of an object's fields is ignored."""
    return next(differences(expected, found), None)


def differences(expected: Json, found: Json, where: str = "") -> Iterator[Difference]:
    """Yield each difference in order. `1` differs from `true` and from `1.0`."""
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
    """Return the difference; of two long strings, only the part around the first differing character."""
    if isinstance(expected, str) and isinstance(found, str) and max(len(expected), len(found)) > _LONG:
        same = next((at for at, (left, right) in enumerate(zip(expected, found, strict=False)) if left != right), None)
        at = min(len(expected), len(found)) if same is None else same
        begin = max(0, at - _LONG // 4)
        mark = f" from letter {begin}" if begin else ""
        return Difference(where, short(expected[begin : begin + _LONG]) + mark, short(found[begin : begin + _LONG]) + mark)
    return Difference(where, short(expected), short(found))


def short(value: Json) -> str:
    """Return the value as JSON, truncated if it is long."""
    text = dumps(value).decode()
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"
