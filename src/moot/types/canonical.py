"""JSON as moot writes and reads it: UTF-8, insertion order, exact integers, no NaN."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn, TypeAlias, cast

import orjson

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"

MAX_DEPTH = 200
"""Maximum nesting depth of stored values. Deeper values are refused, because other JSON readers fail on them."""


def empty() -> JsonObject:
    """Return a new empty object, for use as a default in frozen dataclasses."""
    return {}


def dumps(value: object) -> bytes:
    """Return the canonical bytes of a JSON value. Lone surrogates become U+FFFD; NaN and infinities become null.

    Raise ValueError if the value is not JSON or is nested too deeply.
    """
    try:
        return orjson.dumps(value)
    except TypeError:  # orjson refuses integers over 64 bits and lone surrogates; vendors send both
        return _dumps_exact(value)


def loads(data: bytes | str) -> Json:
    """Parse any JSON value fast; integers over 64 bits lose digits. Raise ValueError for invalid JSON."""
    return cast("Json", orjson.loads(data))


def loads_object(data: bytes | str) -> JsonObject:
    """Parse a JSON object fast. Raise ValueError for anything else."""
    value = orjson.loads(data)
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, got {type(value).__name__}")
    return cast("JsonObject", value)


def loads_exact(data: bytes | str) -> Json:
    """Parse a JSON value exactly: keep every digit of an integer; refuse NaN, infinities and duplicate keys with ValueError.

    Use it for tool arguments, which must have only one possible reading, because the tool must get exactly what a person approved.
    """
    try:
        value = json.loads(data, object_pairs_hook=_object_without_duplicates, parse_constant=_refuse, parse_float=_float)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if _depth_exceeds(value, MAX_DEPTH):
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    return cast("Json", value)


def _dumps_exact(value: object) -> bytes:
    try:
        text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except TypeError as error:
        raise ValueError(str(error)) from error
    return text.encode()


def _finite(value: Any) -> Any:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    if isinstance(value, dict):
        return {_finite(key): _finite(item) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in cast("list[Any]", value)]
    return re.sub("[\ud800-\udfff]", "\ufffd", value) if isinstance(value, str) else value


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        duplicate = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"duplicate key {duplicate!r}")
    return result


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not valid JSON")


def _float(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text} is too large")
    return number


def _depth_exceeds(value: Any, limit: int) -> bool:
    level: list[Any] = [value]
    for _ in range(limit + 1):
        level = [
            item
            for node in level
            if isinstance(node, dict | list)
            for item in (cast("dict[str, Any]", node).values() if isinstance(node, dict) else cast("list[Any]", node))
        ]
        if not level:
            return False
    return True
