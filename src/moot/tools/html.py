"""A web page as Markdown, whatever the page does to the converter."""

from __future__ import annotations

import html
import re

from html_to_markdown import convert

__all__ = ["plain", "to_markdown"]

MAX_CHARACTERS = 1_000_000
"""Without scripts and styles. Converting takes up to the square of the nesting."""
_TAG = re.compile(r"<[^<>]*>")
_BLANK_LINES = re.compile(r"\n[ \t]*(\n[ \t]*)+")


def to_markdown(page: str) -> str:
    """The page's text as Markdown; plain text when its nesting is too deep to convert."""
    slim = _without(_without(page, "script"), "style")[:MAX_CHARACTERS]
    content = convert(slim).content or plain(slim)
    return _BLANK_LINES.sub("\n\n", content).strip()


def plain(piece: str) -> str:
    """The text without tags and entities, on one line for each of its lines."""
    return html.unescape(_TAG.sub("", piece)).strip()


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
