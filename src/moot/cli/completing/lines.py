"""Splitting of incomplete command lines into words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True, slots=True)
class Line:
    """A command line up to the cursor."""

    words: tuple[str, ...]
    """Complete words after `moot`."""
    part: str
    """Part of the last word before the cursor, without quotes. May be empty."""
    quoted: bool = False
    """True if the cursor is inside quotes."""


def split(text: str) -> Line | None:
    """Split a command line. Return None if `moot` is not in it."""
    words, part, quoted = _words(text)
    names = [PurePath(word).name for word in words]
    if "moot" not in names:
        return None
    return Line(tuple(words[names.index("moot") + 1 :]), part, quoted)


def _words(text: str) -> tuple[list[str], str, bool]:
    words: list[str] = []
    part, started, quote = "", False, ""
    characters = iter(text)
    for character in characters:
        if quote:
            if character == quote:
                quote = ""
            else:
                part += next(characters, "") if character == "\\" and quote == '"' else character
        elif character in "\"'":
            quote, started = character, True
        elif character == "\\":
            part, started = part + next(characters, ""), True
        elif character.isspace():
            if part or started:
                words.append(part)
            part, started = "", False
        else:
            part, started = part + character, True
    return words, part, bool(quote)
