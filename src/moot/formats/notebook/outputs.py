"""The outputs of a notebook's cell that show an answer: a MIME bundle for each text, tool call and other part. All text is untrusted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from moot.convert.fold import in_history
from moot.formats.html.markup import Safe, element, joined
from moot.formats.html.messages import node_of
from moot.formats.kit.fidelity import pretty
from moot.formats.kit.fields import obj
from moot.formats.kit.steps import output_text
from moot.formats.portable import conversation_value, message_value
from moot.markup.markdown import new_parser
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.format import ExportedConversation
from moot.types.message import Message, Part, is_settled, is_tool, note_of, tool_name
from moot.types.part_tree import Nested, nest

RECORD = "application/vnd.moot.conversation+json"
"""MIME type of the messages that a cell's outputs show. Frontends keep it and don't show it."""

_LONGEST = 4_000
"""Maximum number of characters of a tool's output in plain text."""

_STYLE = Safe(
    "<style>"
    ".moot details{border:1px solid var(--jp-border-color2,#c8c8c8);border-radius:6px;margin:2px 0;max-width:100%}"
    ".moot details.reasoning{border:0}"
    ".moot summary{cursor:pointer;display:flex;gap:.7em;padding:3px 9px;list-style:none;overflow:hidden;white-space:nowrap}"
    ".moot .reasoning summary{padding:0;opacity:.7}"
    ".moot summary::before{content:'▸';flex:none;opacity:.6}.moot details[open]>summary::before{content:'▾'}"
    ".moot .tool{font-weight:600;flex:none}.moot .brief{flex:1;overflow:hidden;text-overflow:ellipsis;opacity:.75;"
    "font-family:var(--jp-code-font-family,monospace);font-size:.92em}"
    ".moot .reasoning .brief{font-family:inherit;font-style:italic}"
    ".moot .state{flex:none;opacity:.7}.moot .state.ok{color:var(--jp-success-color0,#1b7a36);opacity:1}"
    ".moot .state.bad{color:var(--jp-error-color1,#b3261e);opacity:1}"
    ".moot .inside{padding:0 10px 6px}.moot h3{font-size:.85em;margin:6px 0 2px;opacity:.7}"
    ".moot pre{margin:0;padding:5px 8px;max-height:22em;overflow:auto;background:var(--jp-layout-color2,#f2f2f2);border-radius:4px}"
    ".moot figure{margin:4px 0}.moot img{max-width:100%}"
    "</style>"
)


def outputs_of(parts: Sequence[Part]) -> list[JsonObject]:
    """Return the MIME bundles that show an answer so far, in order. Parts of attempts that were abandoned are left out."""
    return [bundle for node in nest(in_history(parts)) if (bundle := _bundle(node)) is not None]


def record_of(conversation: Conversation, messages: Sequence[Message]) -> JsonObject:
    """Return the content of type `RECORD` with these messages. Their parents are given by `Message.parent`."""
    value = conversation_value(ExportedConversation(conversation, ()), None)
    return {"version": 1, "conversation": value, "messages": [message_value(message, message.parent) for message in messages]}


def text_bundle(words: str) -> JsonObject:
    """Return a bundle that shows text unchanged, in a fixed-width font."""
    return {"text/plain": words}


def markdown_bundle(source: str) -> JsonObject:
    """Return a bundle that shows Markdown. HTML in it is shown as text, and pictures that would be fetched become links."""
    return {"text/markdown": safe_markdown(source), "text/plain": source}


_TAG = re.compile(r"<(?=/?[A-Za-z][A-Za-z0-9-]*(?:[\s/>]|\Z)|[!?])")
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(?:.*?[^`])?\1(?!`)", re.DOTALL)


def safe_markdown(source: str) -> str:
    """Return Markdown in which HTML is text and no picture is fetched. Code is unchanged.

    A frontend would run HTML, or fetch a picture whose URL contains what the model has read.
    """
    lines = source.split("\n")
    blocks = [token.map for token in new_parser().parse(source) if token.type in ("fence", "code_block") and token.map]
    code = {number for begin, end in blocks for number in range(begin, end)}
    pieces: list[str] = []
    prose: list[str] = []
    for number, line in enumerate(lines):
        if number in code:
            if prose:
                pieces.append(_escaped("\n".join(prose)))
                prose = []
            pieces.append(line)
        else:
            prose.append(line)
    if prose:
        pieces.append(_escaped("\n".join(prose)))
    return "\n".join(pieces)


def _escaped(prose: str) -> str:
    found: list[str] = []
    begin = 0
    for span in _SPAN.finditer(prose):
        found += [_without_html(prose[begin : span.start()]), span[0]]
        begin = span.end()
    return "".join([*found, _without_html(prose[begin:])])


def _without_html(prose: str) -> str:
    return _TAG.sub(r"\\<", prose).replace("![", "\\![")


def _bundle(node: Nested) -> JsonObject | None:
    part = node.part
    kind = str(part.get("type", ""))
    if kind == "text":
        words = str(part.get("text", ""))
        return markdown_bundle(words) if words.strip() else None
    shown = node_of(node, {})
    if not shown:
        return None
    words = "\n".join(_plain(node))
    return {"text/html": element("div", joined(_STYLE, shown), klass="moot"), "text/plain": words}


def _plain(node: Nested) -> Iterator[str]:
    """Yield the lines of a part for frontends that show no HTML."""
    part, kind = node.part, str(node.part.get("type", ""))
    if is_tool(part):
        value = part.get("input")
        yield f"{tool_name(part)}: {_line(value)} ({_state(part)})"
        if is_settled(part):
            output = output_text(part)
            yield output if len(output) <= _LONGEST else f"{output[:_LONGEST]}\n({len(output):,} characters in total)"
        for inner in node.inner:
            yield from (f"  {line}" for line in "\n".join(_plain(inner)).split("\n"))
    elif kind == "reasoning":
        yield f"Reasoning: {part.get('text', '')}"
    elif kind in ("file", "reasoning-file"):
        yield f"File: {part.get('filename') or part.get('mediaType') or 'file'}"
    else:
        yield note_of(part) or str(part.get("text") or part.get("title") or part.get("url") or pretty(part.get("data")))


def _line(value: Json) -> str:
    words = next((one for one in obj(value).values() if isinstance(one, str) and one.strip()), "")
    return " ".join(words.split())[:200]


_STATES = {"output-available": "done", "output-error": "failed", "output-denied": "denied", "approval-requested": "waiting for approval"}


def _state(part: Part) -> str:
    return _STATES.get(str(part.get("state")), "running")
