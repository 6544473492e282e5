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
    """Return a part as HTML. `children` maps tool calls to the conversations of their sub-agents."""
    kind = str(part.get("type", ""))
    if is_tool(part):
        below = children.get(str(part.get("toolCallId")))
        return call(part, below) if below is not None else call(part)
    match kind:
        case "text":
            content = str(part.get("text", ""))
            return element("div", rendered(content), klass="text", dir="auto") if content.strip() else Safe("")
        case "reasoning":
            return _reasoning(str(part.get("text", "")), "Reasoning")
        case "file" | "reasoning-file":
            return _file(part)
        case "source-url" | "source-document":
            return _source(part)
        case "steering-message":
            return _steering(part, children)
        case _:
            return _BY_TYPE.get(kind, _other)(part)


def _reasoning(content: str, name: str) -> Safe:
    if not content.strip():
        return Safe("")
    line = " ".join(content.split())
    brief = line if len(line) <= _BRIEF else f"{line[: _BRIEF - 1]}…"
    title = joined(element("span", text(name), klass="tool"), element("span", text(brief), klass="brief"))
    inside = element("div", rendered(content), klass="inside text", dir="auto")
    return element("details", element("summary", title), inside, klass="reasoning")


def _file(part: Part) -> Safe:
    """Return an embedded picture or text, or the name of any other file."""
    url, media_type = str(part.get("url", "")), str(part.get("mediaType", ""))
    name = str(part.get("filename") or media_type or "file")
    if url.startswith("data:image/"):
        return element("figure", element("img", src=url, alt=name, loading="lazy"), element("figcaption", text(name)))
    if (link := address(url)) is not None:
        return element("p", element("a", text(name), href=link, rel="noopener noreferrer nofollow", target="_blank"), klass="file")
    data = data_of(part)
    about = text(f"{name} · {media_type} · {len(data):,} bytes" if data is not None else f"{name} · {media_type}")
    if (content := file_text(part)) is not None:
        inside = element("div", block(content), klass="inside")
        return element("details", element("summary", element("span", about, klass="tool")), inside, klass="call")
    return element("p", about, klass="file")


def _source(part: Part) -> Safe:
    url = str(part.get("url", ""))
    content = text(part.get("title") or url or part.get("filename") or "a document")
    link = address(url)
    inside = content if link is None else element("a", content, href=link, rel="noopener noreferrer nofollow", target="_blank")
    return element("p", text("Source: "), inside, klass="source")


def _steering(part: Part, children: Mapping[str, Safe]) -> Safe:
    """Return messages that the user sent during the answer."""
    content = part.get("parts")
    pieces = [part_of(piece, children) for piece in content if isinstance(piece, dict)] if isinstance(content, list) else []
    return element("div", element("h3", text("Sent during the answer")), *pieces, klass="steering")


def _note(content: str) -> Safe:
    return element("p", text(content), klass="note", dir="auto")


def _plan(part: Part) -> Safe:
    """Return the entries of a plan with their status."""
    lines = [element("li", text(f"{_SIGNS.get(entry.status, '·')} {entry.content}"), dir="auto") for entry in plan_of(part)]
    return element("ul", *lines, klass="plan") if lines else Safe("")


def _sub_agent(part: Part) -> Safe:
    """Return text or reasoning of a sub-agent."""
    words = sub_agent_words(part)
    if words.thought:
        return _reasoning(words.text, f"Reasoning of {words.agent}")
    inside = element("div", rendered(words.text), klass="text", dir="auto")
    return element("div", element("h3", text(words.agent)), inside, klass="steering") if words.text.strip() else Safe("")


def _other(part: Part) -> Safe:
    inside = element("div", *values(dict(part)), klass="inside")
    return element("details", element("summary", element("span", text(part.get("type", "")), klass="tool")), inside, klass="call")


_BY_TYPE: Mapping[str, Callable[[Part], Safe]] = {
    "step-start": lambda _: Safe(""),
    "data-title": lambda _: Safe(""),
    "data-note": lambda part: _note(note_of(part)),
    "data-attempt": lambda _: _note("The answer was interrupted here and started again."),
    "data-plan": _plan,
    "data-subagent": _sub_agent,
}
"""Parts other than text, files and tool calls, by type."""
