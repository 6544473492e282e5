"""The parts of a message."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from moot.formats.html.calls import call, value
from moot.formats.html.code import block
from moot.formats.html.elements import Safe, address, element, joined, text
from moot.formats.html.markdown import rendered
from moot.types.part import Part, is_tool, note_of

__all__ = ["part_of"]

_SILENT = ("step-start", "data-title")
_BRIEF = 80


def part_of(part: Part, children: Mapping[str, Safe]) -> Safe:
    """A part as HTML; `children`: tool call → what its sub-agent said."""
    kind = str(part.get("type", ""))
    if is_tool(part):
        below = children.get(str(part.get("toolCallId")))
        return call(part, below) if below is not None else call(part)
    match kind:
        case "text":
            said = str(part.get("text", ""))
            return element("div", rendered(said), klass="text", dir="auto") if said.strip() else Safe("")
        case "reasoning":
            return _reasoning(str(part.get("text", "")))
        case "file" | "reasoning-file":
            return _file(part)
        case "source-url":
            return _source(part)
        case "steering-message":
            return _steering(part, children)
        case "data-note":
            return element("p", text(note_of(part)), klass="note")
        case _:
            return Safe("") if kind in _SILENT else _other(part, kind)


def _reasoning(said: str) -> Safe:
    if not said.strip():
        return Safe("")
    line = " ".join(said.split())
    brief = line if len(line) <= _BRIEF else f"{line[: _BRIEF - 1]}…"
    title = joined(element("span", text("Reasoning"), klass="tool"), element("span", text(brief), klass="brief"))
    inside = element("div", rendered(said), klass="inside text", dir="auto")
    return element("details", element("summary", title), inside, klass="reasoning")


def _file(part: Part) -> Safe:
    """A picture from `data:` as a picture, a text as text; of everything else its name."""
    url, media_type = str(part.get("url", "")), str(part.get("mediaType", ""))
    name = str(part.get("filename") or media_type or "file")
    if url.startswith("data:image/"):
        return element("figure", element("img", src=url, alt=name, loading="lazy"), element("figcaption", text(name)))
    if (link := address(url)) is not None:
        return element("p", element("a", text(name), href=link, rel="noopener noreferrer nofollow", target="_blank"), klass="file")
    data = _bytes(url)
    about = text(f"{name} · {media_type} · {len(data):,} bytes" if data is not None else f"{name} · {media_type}")
    if data is not None and media_type.startswith("text/"):
        inside = element("div", block(data.decode("utf-8", "replace")), klass="inside")
        return element("details", element("summary", element("span", about, klass="tool")), inside, klass="call")
    return element("p", about, klass="file")


def _bytes(url: str) -> bytes | None:
    head, _, encoded = url.partition(",")
    if not head.startswith("data:") or not head.endswith(";base64"):
        return None
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error:
        return None


def _source(part: Part) -> Safe:
    url = str(part.get("url", ""))
    said = text(part.get("title") or url)
    link = address(url)
    inside = said if link is None else element("a", said, href=link, rel="noopener noreferrer nofollow", target="_blank")
    return element("p", text("Source: "), inside, klass="source")


def _steering(part: Part, children: Mapping[str, Safe]) -> Safe:
    """What somebody said while the answer was being made."""
    said = part.get("parts")
    pieces = [part_of(piece, children) for piece in said if isinstance(piece, dict)] if isinstance(said, list) else []
    return element("div", element("h3", text("Said meanwhile")), *pieces, klass="steering")


def _other(part: Part, kind: str) -> Safe:
    inside = element("div", value(dict(part)), klass="inside")
    return element("details", element("summary", element("span", text(kind), klass="tool")), inside, klass="call")
