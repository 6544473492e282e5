"""Half a command line as words, as a shell would split it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True, slots=True)
class Line:
    """A command line up to the cursor."""

    words: tuple[str, ...]
    """Whole ones behind `moot`."""
    part: str
    """What stands before the cursor of the last word, without quotes; may be empty."""
    quoted: bool = False
    """Whether a quote is open there."""


def split(text: str) -> Line | None:
    """The line; None when `moot` is not in it yet."""
    words, part, quoted = _words(text)
    names = [PurePath(word).name for word in words]
    if "moot" not in names:
        return None
    return Line(tuple(words[names.index("moot") + 1 :]), part, quoted)


def _words(text: str) -> tuple[list[str], str, bool]:
    words: list[str] = []
    part, begun, quote = "", False, ""
    characters = iter(text)
    for character in characters:
        if quote:
            if character == quote:
                quote = ""
            else:
                part += next(characters, "") if character == "\\" and quote == '"' else character
        elif character in "\"'":
            quote, begun = character, True
        elif character == "\\":
            part, begun = part + next(characters, ""), True
        elif character.isspace():
            if part or begun:
                words.append(part)
            part, begun = "", False
        else:
            part, begun = part + character, True
    return words, part, bool(quote)
