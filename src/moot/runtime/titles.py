"""Default titles of conversations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from moot.guard.terminal import clean
from moot.types.message import Part

FIRST_LINE = 80
_FILE = re.compile(r"(\S*[./]\S*):\n\n")
"""The start of a text part that holds an attached text file: its name."""
_COMMAND = re.compile(r"/[a-z][\w-]*(\s|$)")
_FENCE = re.compile(r"```|~~~")


def first_line(parts: Sequence[Part]) -> str:
    """Return the first meaningful line of a prompt, a file's name if there are only files, or an empty string."""
    texts = [str(part.get("text", "")) for part in parts if part.get("type") == "text"]
    own = [text for text in texts if _FILE.match(text) is None]
    lines = [" ".join(clean(line).split()) for text in own for line in text[: 100 * FIRST_LINE].splitlines()]
    written = [line for line in lines if any(character.isalnum() for character in line) and _FENCE.match(line) is None]
    line = next((line for line in written if _COMMAND.match(line) is None), written[0] if written else "")
    for part in parts if not line else ():
        if part.get("type") == "file":
            return shorten(clean(str(part.get("filename") or "file")), FIRST_LINE)
        if (header := _FILE.match(str(part.get("text", "")))) is not None:
            return shorten(clean(PurePath(header[1]).name), FIRST_LINE)
    return shorten(line, FIRST_LINE)


def shorten(line: str, most: int) -> str:
    """Shorten the line to at most `most` characters, ending with a whole word if that keeps more than half of them."""
    if len(line) <= most:
        return line
    cut = line[: most - 1]
    whole = cut.rpartition(" ")[0]
    return f"{whole if len(whole) > most // 2 else cut}…"
