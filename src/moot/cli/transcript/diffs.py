"""Unified diffs in colour, with the changed words of a line marked."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from moot.cli.terminal.styles import ADDED, COMMENT, DIM, PLAIN, REMOVED, REVERSE, Line
from moot.cli.terminal.text import expanded

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_COMPARED = 2000
"""Maximum length of a line to compare word by word, in characters."""
_ALIKE = 0.4
"""Minimum similarity of two lines to be shown as one changed line."""


def diff_lines(text: str, *, headed: bool = True) -> list[Line]:
    """Return the lines of a diff in colour, with their text unchanged.

    The two header lines with the file names are omitted.
    If `headed` is False, the diff has no header, and lines that look like a header are changed lines.
    """
    lines = [expanded(line) for line in text.split("\n")]
    shown: list[Line] = []
    at = 2 if headed and len(lines) > 2 and lines[0].startswith("--- ") and lines[1].startswith("+++ ") else 0
    while at < len(lines):
        removed = _run(lines, at, "-", headed=headed)
        added = _run(lines, at + len(removed), "+", headed=headed)
        if removed or added:
            # compared word by word if as many lines were added as removed
            pairs = [_compared(old, new) for old, new in zip(removed, added, strict=False)] if len(removed) == len(added) else []
            shown += (old for old, _ in pairs) if pairs else ([(line, REMOVED)] for line in removed)
            shown += (new for _, new in pairs) if pairs else ([(line, ADDED)] for line in added)
            at += len(removed) + len(added)
            continue
        is_mark = lines[at].startswith(("@@", "--- ", "+++ ", "… ("))
        shown.append([(lines[at], DIM | COMMENT if is_mark else PLAIN)])
        at += 1
    return shown


def _run(lines: Sequence[str], at: int, sign: str, *, headed: bool) -> list[str]:
    end = at
    while end < len(lines) and lines[end].startswith(sign) and not (headed and lines[end].startswith(sign * 3 + " ")):
        end += 1
    return list(lines[at:end])


def _compared(old: str, new: str) -> tuple[Line, Line]:
    plain: tuple[Line, Line] = [(old, REMOVED)], [(new, ADDED)]
    if max(len(old), len(new)) > _COMPARED:
        return plain
    before, after = _WORDS.findall(old[1:]), _WORDS.findall(new[1:])
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    if matcher.quick_ratio() < _ALIKE or matcher.ratio() < _ALIKE:
        return plain
    left: Line = [("-", REMOVED)]
    right: Line = [("+", ADDED)]
    for operation, a, b, c, d in matcher.get_opcodes():
        marked = 0 if operation == "equal" else REVERSE
        left.append(("".join(before[a:b]), REMOVED | marked))
        right.append(("".join(after[c:d]), ADDED | marked))
    return [piece for piece in left if piece[0]], [piece for piece in right if piece[0]]
