"""Regular expressions of queries. RE2 matches in linear time, so no expression can make a search hang."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple, cast

import re2  # pyright: ignore[reportMissingTypeStubs]

from moot.errors import UsageError

_COMPILED: Any = re2
_LEAST = 3  # minimum length of a word by which messages are selected
_LINES = "(?m)"
_PROBES = ("", "a b", "ab")
"""Texts in which expressions that need no character have an empty match. `\\b` and `\\B` need characters next to them."""
_ANYTHING, _SEPARATOR, _BOUNDARY = "\0", "\n", "\1"
_ITEM = re.compile(
    r"(?P<flags>\(\?[imsU]*(?:-[imsU]+)?\))|(?P<group>\((?:\?(?:P?<\w+>|[imsU]*(?:-[imsU]+)?:))?)|(?P<end>\))|(?P<or>\|)"
    r"|(?P<class>\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\\[dDsSwWB]|\.)|(?P<separator>[\^$]|\\[Azaftnrv])|(?P<boundary>\\b)"
    r"|(?P<repeat>[*+?]\??|\{\d+(?:,\d*)?\}\??)|\\(?P<escaped>[!-/:-@[-`{-~])|(?P<unknown>\\)|(?P<literal>.)",
    re.DOTALL,
)
"""An item of an expression in the syntax of RE2. Python's parser can't be used, because it reads `[[:digit:]]` and others differently."""
_WORD = re.compile("[a-z0-9]+")


@lru_cache(64)
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile the expression: case is ignored, and `^` and `$` match at lines.

    Raise UsageError if RE2 does not support it, or if it also matches empty text, and so every message.
    """
    options = _COMPILED.Options()
    options.log_errors = False
    options.case_sensitive = False
    try:
        found = cast("re.Pattern[str]", _COMPILED.compile(f"{_LINES}{pattern}", options))
    except _COMPILED.error as error:
        reason = error.args[0].decode("utf-8", "replace") if error.args and isinstance(error.args[0], bytes) else str(error)
        raise UsageError(
            f"Invalid regular expression /{pattern}/: {reason.replace(_LINES, '', 1)}.",
            fix=f'The syntax is that of RE2, without lookaround and backreferences. To search for the text itself, quote it: "/{pattern}/"',
        ) from error
    if any(match is not None and match.start() == match.end() for match in map(found.search, _PROBES)):
        raise UsageError(
            f"The regular expression /{pattern}/ also matches empty text, so it would find every message.",
            fix="Require at least one character, for example with + instead of *.",
        )
    return found


class Word(NamedTuple):
    """A word that every match contains."""

    text: str
    is_whole: bool
    """False if letters that are not ASCII may precede or follow it: RE2's `\\b` matches between them and ASCII letters."""


@lru_cache(64)
def words_of(pattern: str) -> tuple[Word, ...]:
    """Return words that every match contains, so that the index can be used. Empty if the expression has syntax that is not known here.

    `pattern` must be a valid expression.
    """
    levels = [""]
    """The required text of the open groups. Other characters than ASCII, and anything that may differ between matches, are `_ANYTHING`."""
    last = 0
    """Start of the last item in the current level, which a repetition applies to."""
    starts: list[int] = []
    choices = [False]
    """True for each open group that contains alternatives."""
    for match in _ITEM.finditer(pattern):
        kind, text = str(match.lastgroup), levels[-1]
        if kind == "unknown":
            return ()
        if kind == "group":
            starts.append(len(text))
            levels.append("")
            choices.append(False)
            last = 0
        elif kind == "end":
            inner = levels.pop()
            last = starts.pop()
            levels[-1] += _ANYTHING if choices.pop() else inner or _ANYTHING
        elif kind == "or":
            choices[-1] = True
        elif kind == "repeat":
            levels[-1] = text[:last] + _ANYTHING
        elif kind != "flags":
            last = len(text)
            levels[-1] += _ITEMS.get(kind) or (match[kind] if match[kind].isascii() else _ANYTHING)
    return () if choices[0] else tuple(dict.fromkeys(_words(levels[0].lower())))


_ITEMS = {"class": _ANYTHING, "separator": _SEPARATOR, "boundary": _BOUNDARY}


def _words(text: str) -> list[Word]:
    found: list[Word] = []
    for run in text.split(_ANYTHING):
        for match in _WORD.finditer(run):
            sides = run[: match.start()], run[match.end() :]
            # the first and last word of a literal may be parts of longer words
            if all(sides) and len(match[0]) >= _LEAST:
                found.append(Word(match[0], all(side.replace(_BOUNDARY, "") for side in sides)))
    return found
