"""Regular expressions in queries. RE2 matches in linear time, so no expression can make a search hang."""

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
"""Texts in which every expression that can match without a character has an empty match. `\\b` and `\\B` need characters next to them."""
_ANYTHING, _SEPARATOR, _BOUNDARY = "\0", "\n", "\1"
_ITEM = re.compile(
    r"(?P<flags>\(\?[imsU]*(?:-[imsU]+)?\))|(?P<group>\((?:\?(?:P?<\w+>|[imsU]*(?:-[imsU]+)?:))?)|(?P<end>\))|(?P<or>\|)"
    r"|(?P<class>\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\\[dDsSwWB]|\.)|(?P<separator>[\^$]|\\[Azaftnrv])|(?P<boundary>\\b)"
    r"|(?P<repeat>[*+?]\??|\{\d+(?:,\d*)?\}\??)|\\(?P<escaped>[!-/:-@[-`{-~])|(?P<unknown>\\)|(?P<literal>.)",
    re.DOTALL,
)
"""An item of an expression in the syntax of RE2. Python's parser can't be used, because it interprets `[[:digit:]]` and other constructs
differently."""
_WORD = re.compile("[a-z0-9]+")


@lru_cache(64)
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile the expression: case is ignored, and `^` and `$` match at line boundaries.

    Raise UsageError if RE2 does not support the expression, or if it matches empty text and therefore every message.
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
            fix=f'Use RE2 syntax, which has no lookaround or backreferences. To search for the text itself, quote it: "/{pattern}/"',
        ) from error
    if any(match.start() == match.end() for probe in _PROBES for match in found.finditer(probe)):
        raise UsageError(
            f"The regular expression /{pattern}/ also matches empty text, so it would match every message.",
            fix="Require at least one character, for example with + instead of *.",
        )
    return found


class Word(NamedTuple):
    """A word that every match contains."""

    text: str
    is_whole: bool
    """False if non-ASCII letters may precede or follow the word, because RE2's `\\b` matches between them and ASCII letters.

    Such words are looked up in the vocabulary, which leaves out words of over 40 characters and those with five or more digits.
    """


@lru_cache(64)
def words_of(pattern: str) -> tuple[Word, ...]:
    """Return words that every match contains, so that the index can be used.

    The result is empty if the expression contains syntax that is not known here. `pattern` must be valid.
    """
    levels = [""]
    """The required text of the open groups. Non-ASCII characters, and anything that may differ between matches, are represented by
    `_ANYTHING`."""
    last = 0
    """Start of the last item at the current level, to which a repetition applies."""
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
