"""What one line of Markdown is, told by its first characters and by what it stands in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["HEAD", "ROW", "Container", "Kind", "Told", "decided", "inside", "tell"]

HEAD = 200
"""What may be needed to tell what a line is; a longer line is text, a heading, an item or a quote."""
ROW = 8000
"""A longer row of a table is text."""

Kind: TypeAlias = Literal["blank", "text", "heading", "rule", "fence", "row", "indented"]

_ITEM = re.compile(r"( *)([-*+]|\d{1,9}[.)])(?:( {1,4})(?! )| (?= {4})| *$)")
_QUOTE = re.compile(r" {0,3}> ?")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$")
_HEADING = re.compile(r" {0,3}(#{1,6})(?: +|$)")
_CLOSING = re.compile(r"(?: +#+)? *$")
_RULE = re.compile(r" {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$")
_SOON = re.compile(r" {0,3}(?:(?:[-*+]|\d{1,9}[.)]) +)?(?:[^\s\-*+>#`~|_\d\\\[]|\*{1,2}[^\s*]|`[^`]|_[^\s_]|\[[^ xX]|\d{1,9}[^\d.)])")
"""Beginnings that leave no doubt."""
_ROW_BEGINS = re.compile(r"[ >]*(?:(?:[-*+]|\d{1,9}[.)]) +)*\|")


@dataclass(frozen=True, slots=True)
class Container:
    """A quote, or an item of a list."""

    mark: str = ""
    """An item's own, `-` or `12.`; empty = a quote."""
    content: int = 0
    """The column where an item's text begins, counted from where its container's does."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a line is."""

    kind: Kind
    text: str
    """What is left of the line without the marks of what it is."""
    kept: int
    """How many of the open containers it stands in."""
    added: tuple[Container, ...] = ()
    mark: str = ""
    """The hashes of a heading, the ticks of a fence."""
    language: str = ""


def decided(line: str, *, ruler: bool) -> bool:
    """Whether the beginning of an unfinished line says what it is; `ruler` when the line may make the one before a table's header."""
    if _ROW_BEGINS.match(line):
        return len(line) > ROW
    return len(line) > HEAD or (not ruler and _SOON.match(line) is not None)


def inside(line: str, containers: Sequence[Container]) -> tuple[int, int]:
    """How many of the containers the line stands in, and where what is in them begins."""
    at = 0
    for number, container in enumerate(containers):
        rest = line[at:]
        if not container.mark:
            quote = _QUOTE.match(rest)
            if quote is None:
                return number, at
            at += quote.end()
        elif rest.strip(" "):
            indent = len(rest) - len(rest.lstrip(" "))
            if indent >= container.content:
                at += container.content
            elif indent >= 2 and container.mark[0].isdigit() and _ITEM.match(rest):
                at += indent  # models indent by two what belongs to a numbered item
            else:
                return number, at
    return len(containers), at


def tell(line: str, containers: Sequence[Container], *, whole: bool, paragraph: bool) -> Told:
    """What the line is; `paragraph`: one is open and no blank line came since."""
    if _ROW_BEGINS.match(line):
        whole = whole and len(line) <= ROW
    else:
        whole = whole and len(line) <= HEAD
    head = line if whole else line[:HEAD]
    kept, at = inside(head, containers)
    added: list[Container] = []
    while not (whole and _RULE.match(head, at)):
        container, length = _opened(head[at:], interrupts=paragraph and kept == len(containers) and not added)
        if container is None:
            break
        added.append(container)
        at += length
    if paragraph and not added and kept < len(containers) and _leaf(line, at, whole, kept, ()).kind == "text":
        kept = len(containers)  # a paragraph goes on though its marks were left out
    told = _leaf(line, at, whole, kept, tuple(added))
    return Told("text", told.text.lstrip(" "), kept, told.added) if told.kind == "indented" and paragraph and not added else told


def _opened(rest: str, *, interrupts: bool) -> tuple[Container | None, int]:
    """The container that begins here, and the length of its mark."""
    quote = _QUOTE.match(rest)
    if quote:
        return Container(), quote.end()
    item = _ITEM.match(rest)
    if item is None or (interrupts and (item.end() == len(rest) or (item[2][0].isdigit() and item[2][:-1] != "1"))):
        return None, 0
    empty = item.end() == len(rest) and not item[3]
    content = len(item[1]) + len(item[2]) + (1 if empty else len(item[3] or " "))
    return Container(item[2], content), item.end()


def _leaf(line: str, at: int, whole: bool, kept: int, added: tuple[Container, ...]) -> Told:
    rest = line[at:]
    if not rest.strip(" "):
        return Told("blank" if whole else "text", "", kept, added)
    if heading := _HEADING.match(rest):
        text = rest[heading.end() :]
        return Told("heading", _CLOSING.sub("", text, count=1) if whole else text, kept, added, mark=heading[1])
    if whole and _RULE.match(rest):
        return Told("rule", rest.strip(" "), kept, added)
    if whole and (fence := _FENCE.match(rest)):
        return Told("fence", rest, kept, added, fence[1], fence[2])
    if whole and rest.lstrip(" ").startswith("|"):
        return Told("row", rest.strip(" "), kept, added)
    if whole and rest.startswith("    "):
        return Told("indented", rest, kept, added)
    return Told("text", rest.lstrip(" "), kept, added)
