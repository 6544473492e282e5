"""Regular expressions of queries. RE2 matches in linear time, so no expression can make a search hang."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

import re2  # pyright: ignore[reportMissingTypeStubs]

from moot.errors import UsageError
from moot.store.search.text import tokens

_COMPILED: Any = re2
_LEAST = 3  # minimum length of a word by which messages are selected
_SEPARATOR = "\n"
_LINES = "(?m)"


@lru_cache(64)
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile the expression: case is ignored, and `^` and `$` match at lines. Raise UsageError if RE2 does not support it."""
    options = _COMPILED.Options()
    options.log_errors = False
    options.case_sensitive = False
    try:
        return cast("re.Pattern[str]", _COMPILED.compile(f"{_LINES}{pattern}", options))
    except _COMPILED.error as error:
        reason = error.args[0].decode("utf-8", "replace") if error.args and isinstance(error.args[0], bytes) else str(error)
        raise UsageError(
            f"Invalid regular expression /{pattern}/: {reason.replace(_LINES, '', 1)}.",
            fix=f'The syntax is that of RE2, without lookaround and backreferences. To search for the text itself, quote it: "/{pattern}/"',
        ) from error


@lru_cache(64)
def words_of(pattern: str) -> tuple[str, ...]:
    """Return whole words that every match contains, so that the index can be used. May be empty."""
    try:
        parsed = cast("Any", re)._parser.parse(pattern)
    except (re.error, OverflowError, RecursionError):
        return ()  # syntax that only RE2 has
    text = "".join(_literals(parsed))
    # the first and last word of a literal may be parts of longer words
    inner = [word for run in text.split("\0") for word in _inner(run)]
    return tuple(dict.fromkeys(word for word in inner if len(word) >= _LEAST))


def _literals(nodes: Any) -> Iterator[str]:
    """Yield the characters that must follow each other; NUL for anything else."""
    for name, value in nodes:
        match str(name):
            case "LITERAL":
                yield chr(value) if value < 128 else "\0"
            case "AT" if str(value) != "AT_NON_BOUNDARY":
                yield _SEPARATOR
            case "SUBPATTERN" if not value[1] and not value[2]:
                yield from _literals(value[3])
            case _:
                yield "\0"


def _inner(run: str) -> list[str]:
    separators = [match.start() for match in re.finditer(r"[\W_]", run)]
    return tokens(run[separators[0] : separators[-1]]) if separators else []
