"""Highlighting of source code, for complete texts and for code that is still streaming."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from pygments.token import Text
from pygments.util import ClassNotFound

from moot.plugins.registry import attribute

TokenType: TypeAlias = Any
"""A token type of pygments: a tuple of names that tests membership with `in`."""
CodeLine: TypeAlias = list[tuple[TokenType, str]]
"""One line of code as pieces with their token types, without its newline."""

LARGEST = 20_000
"""Maximum number of characters that are highlighted at once. Lexers can take long for text that is not in their language."""
CONTEXT_LINES = 200
"""Maximum number of lines of an open block that are highlighted again when the next lines arrive."""
_TRIMMED_FROM = 40
_LIVE_CONTEXT_LINES = 20
_LONGEST_LINE = 2000
"""Maximum number of characters of a highlighted line. Longer lines are probably data."""
_ALIASES = {"patch": "diff"}
_LEXERS = "pygments.lexers:get_lexer_by_name"
"""Import path, loaded when the first code is drawn, because the table of lexers is large."""


@lru_cache(maxsize=64)
def find_lexer(language: str) -> Any | None:
    """Return the pygments lexer for the language, or None if there is none."""
    name = language.lower()
    try:
        return attribute(_LEXERS)(_ALIASES.get(name, name), stripnl=False, ensurenl=False) if name else None
    except ClassNotFound:
        return None


_BY_FILE_NAME = "pygments.lexers:find_lexer_class_for_filename"


@lru_cache(maxsize=64)
def language_of(path: str) -> str:
    """Return the programming language of a file, judged by its name; empty if it is unknown."""
    lexer: Any = attribute(_BY_FILE_NAME)(path) if path else None
    return str(lexer.aliases[0]) if lexer is not None and lexer.aliases else ""


class StreamHighlighter:
    """Highlighter of a code block whose lines arrive one after another. At most the last 200 lines are the context for the next line."""

    def __init__(self, language: str) -> None:
        self._lexer = find_lexer(language)
        self._context: list[str] = []
        self._done: list[CodeLine] = []

    @property
    def count(self) -> int:
        """Number of lines added so far."""
        return len(self._done)

    def add(self, lines: Sequence[str]) -> list[CodeLine]:
        """Add the next complete lines and return them highlighted."""
        added: list[CodeLine] = []
        for at in range(0, len(lines), CONTEXT_LINES):
            added += self._add(lines[at : at + CONTEXT_LINES])
        self._done += added
        return added

    def lines(self, lines: Sequence[str]) -> list[CodeLine]:
        """Return all lines of the block so far, highlighted. Lines that were added before are not processed again."""
        self.add(lines[self.count :])
        return self._done

    def peek(self, line: str) -> CodeLine:
        """Return a line that is still being written, highlighted."""
        return self._split([*self._context[-_LIVE_CONTEXT_LINES:], line])[-1]

    def _add(self, lines: Sequence[str]) -> list[CodeLine]:
        if self._lexer is None:
            return [[(Text, line)] for line in lines]
        if any(len(line) > _LONGEST_LINE for line in lines):
            self._context = []
            return [line for one in lines for line in ([[(Text, one)]] if len(one) > _LONGEST_LINE else self._split([one]))]
        context = [*self._context, *lines]
        found = self._split(context)
        self._context = self._trimmed(context, found)
        return found[-len(lines) :] if lines else []

    def _split(self, lines: Sequence[str]) -> list[CodeLine]:
        source = "".join(f"{line}\n" for line in lines)
        if self._lexer is None or len(source) > LARGEST or len(lines[-1]) > _LONGEST_LINE:
            return [[(Text, line)] for line in lines]
        found: list[CodeLine] = [[]]
        for kind, text in self._lexer.get_tokens(source):
            first, *others = text.split("\n")
            if first:
                found[-1].append((kind, first))
            for other in others:
                found.append([(kind, other)] if other else [])
        found = found[: len(lines)]
        if ["".join(text for _, text in line) for line in found] != list(lines):  # some lexers drop or reorder text
            return [[(Text, line)] for line in lines]
        return found

    def _trimmed(self, context: list[str], found: list[CodeLine]) -> list[str]:
        """Drop lines at the start of the context that don't affect the next lines or that exceed the limits. Return the rest."""
        if len(context) > _TRIMMED_FROM:
            starts = [at for at in range(len(context) // 2, len(context) - 1) if context[at][:1].strip()]
            for start in starts[-1:]:
                if self._split(context[start:]) == found[start:]:
                    return context[start:]
        context = context[-CONTEXT_LINES // 2 :] if len(context) > CONTEXT_LINES else context
        while sum(map(len, context)) > LARGEST // 2:
            context = context[len(context) // 2 + 1 :]
        return context
