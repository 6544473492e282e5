"""Conversion of web pages to Markdown, which malicious pages can't slow down."""

from __future__ import annotations

import html
import re

from html_to_markdown import convert

MAX_CHARACTERS = 1_000_000
"""Maximum number of characters in a page without scripts and styles. The rest is cut off."""
MAX_DEPTH = 1000
"""Maximum nesting of elements that are converted. Time grows with the square of the nesting; real pages stay far below this."""
_TAG = re.compile(r"<[^<>]*>")
_NAME = re.compile(r"</?([a-zA-Z][a-zA-Z0-9-]{0,30})")
_VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"})
_SHALLOW = _VOID | {"p", "li", "dt", "dd", "td", "th", "tr", "option"}
"""Elements that do not count as nested: they have no content, or the next element of the same kind closes them."""
_BLANK_LINES = re.compile(r"\n[ \t]*(\n[ \t]*)+")


def to_markdown(page: str) -> str:
    """Return the page's text as Markdown, or as plain text if it is nested too deeply to convert."""
    slim = _without(_without(page, "script"), "style")
    if _too_deep(slim):
        return _BLANK_LINES.sub("\n\n", plain(slim))
    content = convert(slim[:MAX_CHARACTERS]).content or plain(slim[:MAX_CHARACTERS])
    shown = _BLANK_LINES.sub("\n\n", content).strip()
    return shown if len(slim) <= MAX_CHARACTERS else f"{shown}\n\n(truncated: the page is too long)"


def plain(piece: str) -> str:
    """Return the text without tags, with entities decoded and line breaks kept."""
    return html.unescape(_TAG.sub("", piece)).strip()


def _too_deep(page: str) -> bool:
    depth = 0
    for found in _NAME.finditer(page):
        if found[1].lower() not in _SHALLOW:
            depth += -1 if page[found.start() + 1] == "/" else 1
        if depth > MAX_DEPTH:
            return True
    return False


def _without(page: str, tag: str) -> str:
    """Return the page without these elements. A regular expression would search the rest of the page again for every opening tag."""
    lower, at = page.lower(), 0
    pieces: list[str] = []
    while (start := lower.find(f"<{tag}", at)) >= 0:
        pieces.append(page[at:start])
        end = lower.find(f"</{tag}", start)
        closing = lower.find(">", end) if end >= 0 else -1
        if closing < 0:
            return "".join(pieces)
        at = closing + 1
    return "".join([*pieces, page[at:]])
