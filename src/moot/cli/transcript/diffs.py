"""Unified diffs in colour, with line numbers, highlighted code, and the changed words of a line marked."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from moot.cli.terminal.text import ADDED, COMMENT, DIM, PLAIN, REMOVED, REVERSE, Line, expanded
from moot.plugins.registry import attribute

_HIGHLIGHTED, _LANGUAGE_OF = "moot.cli.transcript.markdown_text:highlighted", "moot.markup.code:language_of"
"""Import paths, loaded for the first diff, so that the first prompt does not wait for pygments."""
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_COMPARED = 2000
"""Maximum length of a line to compare word by word, in characters."""
_ALIKE = 0.4
"""Minimum similarity of two lines to be shown as one changed line."""


@dataclass(frozen=True, slots=True)
class Margin:
    """The line numbers of a diff, and the language of its file."""

    numbers: Sequence[str]
    """The line number of each line, all of the same width; blank for lines that are not part of a file."""
    language: str = ""
    """Programming language of the file."""
    gap: str = "…"
    """Shown in place of the lines that are left out between two hunks."""

    def piece(self, at: int, until: int | None = None) -> Margin:
        """Return the margin of the lines from `at` to before `until`."""
        return Margin(self.numbers[at:until], self.language, self.gap)


def margin_of(text: str, *, gap: str = "…") -> Margin | None:
    """Return the line numbers and the language of a unified diff; None if it has no numbers.

    Added and unchanged lines have their number in the new file, removed lines the one in the old file.
    """
    lines = text.split("\n")
    numbers: list[str] = []
    old = new = old_left = new_left = 0
    for line in lines:
        sign, number = line[:1], ""
        if (match := _HUNK.match(line)) and not (old_left or new_left):
            old, old_left, new, new_left = int(match[1]), int(match[2] or 1), int(match[3]), int(match[4] or 1)
        elif sign == "-" and old_left:
            number, old, old_left = str(old), old + 1, old_left - 1
        elif sign == "+" and new_left:
            number, new, new_left = str(new), new + 1, new_left - 1
        elif sign in (" ", "") and old_left and new_left:
            number, old, old_left, new, new_left = str(new), old + 1, old_left - 1, new + 1, new_left - 1
        numbers.append(number)
    width = max(map(len, numbers))
    path = next((line[4:] for line in lines[:2] if line.startswith("+++ ")), "")
    return Margin([number.rjust(width) for number in numbers], attribute(_LANGUAGE_OF)(path), gap) if width else None


def diff_lines(text: str, *, headed: bool = True, margin: Margin | None = None) -> list[Line]:
    """Return the lines of a diff in colour, with their text unchanged.

    The two header lines with the file names are omitted. With `headed=False` the diff has no header, and lines that look like one are
    changed lines. `margin` adds line numbers and highlights unchanged lines.
    """
    lines = [expanded(line) for line in text.split("\n")]
    at = 2 if headed and len(lines) > 2 and lines[0].startswith("--- ") and lines[1].startswith("+++ ") else 0
    if margin is None:
        return _coloured(lines[at:], headed=headed)
    shown: list[Line] = []
    found = _with_code(_coloured(lines[at:], headed=headed), lines[at:], margin.language)
    for line, number, text in zip(found, margin.numbers[at:], lines[at:], strict=True):
        if _HUNK.match(text) and not number.strip():
            shown += [[(" " * len(number), PLAIN), (f" {margin.gap}", DIM)]] if shown else []
        else:
            shown.append([(f"{number} ", DIM), *line])
    return shown


def _with_code(found: list[Line], lines: Sequence[str], language: str) -> list[Line]:
    """Return the lines with the unchanged ones highlighted as code."""
    if not language:
        return found
    new = [at for at, line in enumerate(lines) if line.startswith((" ", "+"))]
    code = attribute(_HIGHLIGHTED)("\n".join(lines[at][1:] for at in new), language)
    for at, line in zip(new, code, strict=True):
        if lines[at].startswith(" "):
            found[at] = [(" ", PLAIN), *line]
    return found


def _coloured(lines: Sequence[str], *, headed: bool) -> list[Line]:
    shown: list[Line] = []
    at = 0
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
