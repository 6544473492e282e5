"""A web page as Markdown, whatever the page does to the converter."""

from __future__ import annotations

import html
import re

from html_to_markdown import convert

__all__ = ["plain", "to_markdown"]

MAX_CHARACTERS = 1_000_000
"""Without scripts and styles."""
MAX_DEPTH = 1000
"""Converting takes the square of the nesting; no page for people comes near this."""
_TAG = re.compile(r"<[^<>]*>")
_NAME = re.compile(r"</?([a-zA-Z][a-zA-Z0-9-]{0,30})")
_VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"})
_SHALLOW = _VOID | {"p", "li", "dt", "dd", "td", "th", "tr", "option"}
"""Elements that hold nothing, or that the next of their kind closes."""
_BLANK_LINES = re.compile(r"\n[ \t]*(\n[ \t]*)+")


def to_markdown(page: str) -> str:
    """The page's text as Markdown; plain text when its nesting is too deep to convert."""
    slim = _without(_without(page, "script"), "style")
    if _too_deep(slim):
        return _BLANK_LINES.sub("\n\n", plain(slim))
    content = convert(slim[:MAX_CHARACTERS]).content or plain(slim[:MAX_CHARACTERS])
    shown = _BLANK_LINES.sub("\n\n", content).strip()
    return shown if len(slim) <= MAX_CHARACTERS else f"{shown}\n\n(cut: the page is too long to show whole)"


def plain(piece: str) -> str:
    """The text without tags and entities, on one line for each of its lines."""
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
    """The page without those elements, in one pass: a pattern would try every opening against the whole rest."""
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
