"""A plain command line read without the parser, whose import alone costs more than all the rest of a short command.

Only what has one reading is taken: whole flags, values of the right type, each at most once. Everything else (help, mistakes,
abbreviations, bundled flags) is left to `parsing`, which judges the same signatures; a test holds the two to one answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moot.cli.command import Command, Group
from moot.cli.slots import REQUIRED, Slot, call_of, slots_of
from moot.cli.tree import TREE
from moot.plugins.registry import attribute

_INTEGER = re.compile(r"0|[1-9][0-9]{0,8}")
_NUMBER = re.compile(r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,9})?")
_NOTHING = frozenset({"", "none", "null"})
"""Words that the parser may take for the absence of a value."""


@dataclass(frozen=True, slots=True)
class Call:
    """A command and what it is called with."""

    command: Callable[..., Any]
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    bare: bool
    """See `Command.bare`."""


class _Unclear(Exception):
    """Not for this reader to say."""


def read(words: Sequence[str]) -> Call | None:
    """The call that a command line stands for; None when only the whole parser can tell."""
    found, rest = command_at(words)
    if found is None:
        return None
    command = attribute(found.path)
    slots = slots_of(command)
    try:
        values = _values(slots, rest)
    except _Unclear:
        return None
    args, keywords = call_of(command, slots, values)
    return Call(command, args, keywords, found.bare)


def command_at(words: Sequence[str]) -> tuple[Command | None, Sequence[str]]:
    """The command that the first words name, and the words behind them."""
    level: Group | Command = TREE
    for at, word in enumerate(words):
        if isinstance(level, Command):
            return level, words[at:]
        if word not in level.commands:
            return None, words
        level = level.commands[word]
    return (level, ()) if isinstance(level, Command) else (None, ())


def _values(slots: Sequence[Slot], words: Sequence[str]) -> dict[str, Any]:
    by_flag = {flag: slot for slot in slots for flag in slot.flags}
    places = [slot for slot in slots if not slot.flags]
    values: dict[str, Any] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("-"):
            flag, equals, text = word.partition("=")
            slot = by_flag.get(flag)
            if slot is None:
                raise _Unclear
            _put(values, slot, _flag_value(slot, text if equals else None, rest))
        else:
            if not places:
                raise _Unclear
            slot = places[0] if places[0].rest else places.pop(0)
            _put(values, slot, _value(slot, word))
    if any(slot.default is REQUIRED and slot.name not in values and not slot.rest for slot in slots):
        raise _Unclear
    return values


def _flag_value(slot: Slot, text: str | None, rest: list[str]) -> Any:
    if slot.kind is bool:
        if text is not None:
            raise _Unclear
        return True
    if text is None:
        if not rest or rest[0].startswith("-"):
            raise _Unclear
        text = rest.pop(0)
    return _value(slot, text)


def _put(values: dict[str, Any], slot: Slot, value: Any) -> None:
    if slot.many or slot.rest:
        values.setdefault(slot.name, []).append(value)
    elif slot.name in values:
        raise _Unclear
    else:
        values[slot.name] = value


def _value(slot: Slot, text: str) -> Any:
    """The text as the slot's type. Raises _Unclear for whatever is not plainly right."""
    if text.lower() in _NOTHING or (slot.choices and text not in slot.choices):
        raise _Unclear
    if slot.kind is str:
        return text
    if slot.kind is Path:
        return Path(text)
    if not (_INTEGER if slot.kind is int else _NUMBER).fullmatch(text):
        raise _Unclear
    number = int(text) if slot.kind is int else float(text)
    said = slot.parameter
    if (
        (said.least is not None and number < said.least)
        or (said.most is not None and number > said.most)
        or (said.above is not None and number <= said.above)
    ):
        raise _Unclear
    return number
