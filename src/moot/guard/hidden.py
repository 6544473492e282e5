"""Detection of characters that people do not see but models read. They can carry instructions or make text look like something else."""

from __future__ import annotations

import re
import unicodedata

# not in the categories Cc, Cf, Cs and Co: fillers, blanks, joiners and variation selectors, which Unicode calls letters, symbols or marks
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2028\u2029\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef\U0001d159]"
)
_PICTURE = "\u200d\ufe0e\ufe0f"
"""Joiner and variation selectors that can be part of an emoji."""
_PLAIN = re.compile("[\n\t -~\u00a1-\u00ac\u00ae-\u02ff\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3]*")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def hidden_characters(text: str) -> list[tuple[int, str]]:
    """Return the line number and code point (`U+200B`) of each invisible or control character, except newlines, tabs and parts of emoji."""
    found: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if _PLAIN.fullmatch(line) is None:
            line = line.removesuffix("\r")
            found += [(number, f"U+{ord(character):04X}") for at, character in enumerate(line) if _is_hidden(line, at)]
    return found


def spelled_out(text: str) -> str:
    """Return the text with each hidden character as `<U+200B>`, so that nothing in it is invisible."""
    if _PLAIN.fullmatch(text):
        return text
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return "\n".join(
        "".join(f"<U+{ord(character):04X}>" if _is_hidden(line, at) else character for at, character in enumerate(line)) for line in lines
    )


def hidden_comments(text: str) -> list[int]:
    """Return the numbers of the lines on which HTML comments start. Markdown viewers don't show comments."""
    return [text.count("\n", 0, found.start()) + 1 for found in _COMMENT.finditer(text)]


def warning_of(text: str) -> str:
    """Return a sentence about the hidden characters of a text; empty if there are none."""
    found = hidden_characters(text)
    if not found:
        return ""
    lines = list(dict.fromkeys(line for line, _ in found))
    names = ", ".join(list(dict.fromkeys(name for _, name in found))[:5])
    where = f"line {lines[0]}" if len(lines) == 1 else f"{len(lines)} lines, the first is line {lines[0]}"
    return f"{len(found)} hidden {'character' if len(found) == 1 else 'characters'} ({names}) on {where}"


def _is_hidden(line: str, at: int) -> bool:
    character = line[at]
    if " " <= character <= "~" or character == "\t":
        return False
    if character in _PICTURE and at and (unicodedata.category(line[at - 1]) in ("So", "Sk") or line[at - 1] + character == "\ufe0f\u200d"):
        return False
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co") or _INVISIBLE.match(character) is not None
