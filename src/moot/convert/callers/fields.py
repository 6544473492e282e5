"""Validated access to the fields of a foreign JSON object. An invalid field raises UsageError with its path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moot.errors import UsageError
from moot.types.canonical import Json, JsonObject


def unfit(where: str, words: str, *, fix: str = "") -> UsageError:
    """Return the error for an invalid field."""
    return UsageError(f"{where}: {words}" if where else words, fix=fix)


class Fields:
    """An object of the request. A field that is null counts as omitted."""

    def __init__(self, value: Json, where: str = "") -> None:
        if not isinstance(value, dict):
            raise unfit(where or "the body", f"expected an object, got {_kind(value)}")
        self.value: JsonObject = value
        self.where = where

    def path(self, name: str) -> str:
        """Return the path of a field, for errors."""
        return f"{self.where}.{name}" if self.where else name

    def text(self, name: str, default: str = "") -> str:
        value = self.value.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise unfit(self.path(name), f"expected a string, got {_kind(value)}")
        return value

    def needed(self, name: str) -> str:
        """Return a required string that is not empty."""
        if self.value.get(name) is None:
            raise unfit(self.path(name), "is missing")
        text = self.text(name)
        if not text:
            raise unfit(self.path(name), "is empty")
        return text

    def number(self, name: str, low: float, high: float) -> float | None:
        value = self.value.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise unfit(self.path(name), f"expected a number, got {_kind(value)}")
        if not low <= value <= high:
            raise unfit(self.path(name), f"{value} is not between {low:g} and {high:g}")
        return float(value)

    def count(self, name: str) -> int | None:
        """Return a positive integer."""
        value = self.value.get(name)
        if value is None:
            return None
        if type(value) is not int or not 1 <= value <= 1 << 31:
            raise unfit(self.path(name), "expected a positive integer")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.value.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise unfit(self.path(name), f"expected true or false, got {_kind(value)}")
        return value

    def fields(self, name: str) -> Fields:
        """Return the object in a field; an empty one if it is omitted."""
        value = self.value.get(name)
        return Fields({} if value is None else value, self.path(name))

    def items(self, name: str) -> list[Json]:
        value = self.value.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise unfit(self.path(name), f"expected a list, got {_kind(value)}")
        return value

    def objects(self, name: str) -> Iterator[Fields]:
        """Yield the objects of a list."""
        for at, item in enumerate(self.items(name)):
            yield Fields(item, f"{self.path(name)}[{at}]")

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of strings; a single string counts as a list of one."""
        value = self.value.get(name)
        found = [value] if isinstance(value, str) else self.items(name)
        if any(not isinstance(item, str) for item in found):
            raise unfit(self.path(name), "expected strings")
        return tuple(str(item) for item in found)

    def one_of(self, name: str, known: Sequence[str], default: str = "") -> str:
        value = self.text(name, default)
        if value and value not in known:
            raise unfit(self.path(name), f"{value!r} is not one of {', '.join(known)}")
        return value

    def refuse(self, name: str, why: str) -> None:
        """Raise UsageError if the field has a value, because it would be ignored otherwise."""
        if self.value.get(name) not in (None, False, [], {}):
            raise unfit(self.path(name), why)


def _kind(value: Json) -> str:
    kinds: dict[type[object], str] = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
