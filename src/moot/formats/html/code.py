"""Code in colours: classes of the page's one style, never styles of its own."""

from __future__ import annotations

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name  # pyright: ignore[reportUnknownVariableType]
from pygments.util import ClassNotFound

from moot.formats.html.elements import Safe, element, text

__all__ = ["block"]

LARGEST = 20_000
"""Characters of a block that are read for colours: what reads a language may take long over what is none of it."""
_FORMATTER = HtmlFormatter[str](nowrap=True)


def block(source: str, language: str = "") -> Safe:
    """Code in a block of its own, with the name of its language."""
    body = _coloured(source, language) or text(source)
    return element("pre", element("code", body), klass="code", data_language=language or None, tabindex="0")


def _coloured(source: str, language: str) -> Safe | None:
    if not language or len(source) > LARGEST:
        return None
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    return Safe(highlight(source.replace("\x00", "\ufffd"), lexer, _FORMATTER))
