"""Source code in colours: CSS classes of the page's own style sheet, never inline styles."""

from __future__ import annotations

from pygments import highlight
from pygments.formatters import HtmlFormatter

from moot.formats.html.elements import Safe, element, text
from moot.markup.code import LARGEST, find_lexer

__all__ = ["block"]

_FORMATTER = HtmlFormatter[str](nowrap=True)


def block(source: str, language: str = "") -> Safe:
    """Return a block of code, labelled with its language."""
    lexer = find_lexer(language) if len(source) <= LARGEST else None
    body = text(source) if lexer is None else Safe(highlight(source.replace("\x00", "\ufffd"), lexer, _FORMATTER))
    return element("pre", element("code", body), klass="code", data_language=language or None, tabindex="0")
