"""Source code in the colours of the terminal."""

from __future__ import annotations

from functools import lru_cache

from pygments.token import Comment, Generic, Keyword, Literal, Name, Number, Operator, String

from moot.cli.screen.cells import expanded
from moot.cli.screen.styles import ADDED, COMMENT, CONSTANT, KEYWORD, LINK, PLAIN, REMOVED, STRING, Line, Style
from moot.markup.code import CodeLine, StreamHighlighter, TokenType

__all__ = ["highlighted", "styled"]

_CODE_STYLES: tuple[tuple[TokenType, Style], ...] = (
    (Keyword.Constant, CONSTANT),
    (Name.Builtin.Pseudo, CONSTANT),
    (Keyword, KEYWORD),
    (Operator.Word, KEYWORD),
    (Name.Tag, KEYWORD),
    (Name.Attribute, LINK),
    (Number, CONSTANT),
    (String, STRING),
    (Literal, STRING),
    (Comment, COMMENT),
    (Operator, LINK),
    (Generic.Inserted, ADDED),
    (Generic.Deleted, REMOVED),
    (Generic.Heading, COMMENT),
    (Generic.Subheading, COMMENT),
)


def highlighted(text: str, language: str) -> list[Line]:
    """Return the lines of a whole text."""
    return [styled(line) for line in StreamHighlighter(language).add([expanded(line) for line in text.split("\n")])]


def styled(line: CodeLine) -> Line:
    """Return a highlighted line in the styles of the terminal."""
    return [(text, _style(kind)) for kind, text in line]


@lru_cache(maxsize=256)
def _style(kind: TokenType) -> Style:
    return next((style for one, style in _CODE_STYLES if kind in one), PLAIN)
