"""The parts of a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from moot.formats._steps import data_of, file_text
from moot.formats.html.calls import call, values
from moot.formats.html.code import block
from moot.formats.html.elements import Safe, address, element, joined, text
from moot.formats.html.markdown import rendered
from moot.types.part import Part, is_tool, note_of, plan_of, sub_agent_words

__all__ = ["part_of"]

_BRIEF = 200
_SIGNS = {"completed": "✓", "in_progress": "▸"}


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
            return _reasoning(str(part.get("text", "")), "Reasoning")
        case "file" | "reasoning-file":
            return _file(part)
        case "source-url" | "source-document":
            return _source(part)
        case "steering-message":
            return _steering(part, children)
        case _:
            return _TOLD.get(kind, _other)(part)


def _reasoning(said: str, name: str) -> Safe:
    if not said.strip():
        return Safe("")
    line = " ".join(said.split())
    brief = line if len(line) <= _BRIEF else f"{line[: _BRIEF - 1]}…"
    title = joined(element("span", text(name), klass="tool"), element("span", text(brief), klass="brief"))
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
    data = data_of(part)
    about = text(f"{name} · {media_type} · {len(data):,} bytes" if data is not None else f"{name} · {media_type}")
    if (said := file_text(part)) is not None:
        inside = element("div", block(said), klass="inside")
        return element("details", element("summary", element("span", about, klass="tool")), inside, klass="call")
    return element("p", about, klass="file")


def _source(part: Part) -> Safe:
    url = str(part.get("url", ""))
    said = text(part.get("title") or url or part.get("filename") or "a document")
    link = address(url)
    inside = said if link is None else element("a", said, href=link, rel="noopener noreferrer nofollow", target="_blank")
    return element("p", text("Source: "), inside, klass="source")


def _steering(part: Part, children: Mapping[str, Safe]) -> Safe:
    """What somebody said while the answer was being made."""
    said = part.get("parts")
    pieces = [part_of(piece, children) for piece in said if isinstance(piece, dict)] if isinstance(said, list) else []
    return element("div", element("h3", text("Said meanwhile")), *pieces, klass="steering")


def _note(said: str) -> Safe:
    return element("p", text(said), klass="note", dir="auto")


def _plan(part: Part) -> Safe:
    """What was to be done, and what of it was."""
    lines = [element("li", text(f"{_SIGNS.get(entry.status, '·')} {entry.content}"), dir="auto") for entry in plan_of(part)]
    return element("ul", *lines, klass="plan") if lines else Safe("")


def _sub_agent(part: Part) -> Safe:
    """What an agent's own agent said or thought."""
    said = sub_agent_words(part)
    if said.thought:
        return _reasoning(said.text, f"Reasoning of {said.agent}")
    inside = element("div", rendered(said.text), klass="text", dir="auto")
    return element("div", element("h3", text(said.agent)), inside, klass="steering") if said.text.strip() else Safe("")


def _other(part: Part) -> Safe:
    inside = element("div", *values(dict(part)), klass="inside")
    return element("details", element("summary", element("span", text(part.get("type", "")), klass="tool")), inside, klass="call")


_TOLD: Mapping[str, Callable[[Part], Safe]] = {
    "step-start": lambda _: Safe(""),
    "data-title": lambda _: Safe(""),
    "data-note": lambda part: _note(note_of(part)),
    "data-attempt": lambda _: _note("The answer broke off here and was begun again."),
    "data-plan": _plan,
    "data-subagent": _sub_agent,
}
"""What stands beside the words of an answer, by the type of its part."""
