"""Render a message as HTML: author, time, parts, tool calls, usage and cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from moot.convert.files.attachments import decode_data_url, file_text
from moot.formats.html.markup import Safe, address, block, element, joined, rendered, text
from moot.formats.kit.fidelity import pretty, steps_of
from moot.formats.kit.fields import LATEST, at, obj, objects
from moot.formats.kit.steps import output_text
from moot.types.canonical import Json
from moot.types.message import Message, Part, is_tool, model_ms, note_of, plan_of, sub_agent_words, tool_name
from moot.types.part_tree import Nested, nest
from moot.types.tree import COMPACTION_PART as PART
from moot.types.tree import SUMMARY_TITLE as TITLE
from moot.types.tree import summary_lines
from moot.types.usage import Usage

_STATES = {
    "output-available": ("done", "ok"),
    "output-error": ("failed", "bad"),
    "output-denied": ("denied", "bad"),
    "approval-requested": ("waiting for approval", ""),
}
_SUMMARY_LENGTH = 200
"""Maximum number of characters in a tool call's summary. The browser shows as many of them as fit on the line."""
_LANGUAGES = {"command": "bash"}


def call(part: Part, *below: Safe) -> Safe:
    """Return a tool call as a collapsed element. `below` contains the content of the sub-agents that it started."""
    state, klass = _STATES.get(str(part.get("state")), ("no output", ""))
    title = joined(
        element("span", text(tool_name(part) or "tool"), klass="tool"),
        element("span", text(_summary(part.get("input"))), klass="brief"),
        element("span", text(state), klass=f"state {klass}".strip()),
    )
    details = [element("h3", text("Input")), *values(part.get("input"))]
    if "output" in part:
        details += [element("h3", text("Output")), *values(part["output"])]
    if part.get("errorText"):
        details += [element("h3", text("Error")), *values(part["errorText"])]
    if part.get("state") == "output-denied":
        details += [element("h3", text("Denied")), element("p", text(output_text(part)), dir="auto")]
    return element("details", element("summary", title), element("div", *details, *below, klass="inside"), klass="call")


def values(value: Json) -> list[Safe]:
    """Return a tool's input or output in readable form: text fields under their names, everything else as JSON."""
    if isinstance(value, str):
        return [block(value)]
    if isinstance(value, list) and value and all(at(one, "type") == "text" and isinstance(at(one, "text"), str) for one in value):
        return [block(str(at(one, "text"))) for one in value]
    # in JSON, a text of several lines would be on one line
    texts = {name: one for name, one in obj(value).items() if isinstance(one, str) and (name in _LANGUAGES or "\n" in one)}
    if not isinstance(value, dict) or not texts:
        return [block(pretty(value), "json")]
    rest = {name: one for name, one in value.items() if name not in texts}
    named = len(value) > 1 or "command" not in value
    shown: list[Safe] = []
    for name, one in texts.items():
        shown += [element("p", text(name), klass="name")] if named else []
        shown.append(block(one, _LANGUAGES.get(name, "")))
    return [*shown, block(pretty(rest), "json")] if rest else shown


def _summary(value: Json) -> str:
    """Return the start of a tool call's input, which is usually a path, a command or a question."""
    if isinstance(value, dict):
        value = next((one for one in value.values() if isinstance(one, str) and one.strip()), "")
    return _brief(str(value or ""))


def _brief(words: str, limit: int = _SUMMARY_LENGTH) -> str:
    line = " ".join(words.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


_SIGNS = {"completed": "✓", "in_progress": "▸"}


def node_of(node: Nested, children: Mapping[str, Safe]) -> Safe:
    """Return a part as HTML. `children` maps tool calls to the conversations of their sub-agents."""
    if not is_tool(node.part):
        return part_of(node.part)
    below = [node_of(inner, children) for inner in node.inner]
    conversation = children.get(str(node.part.get("toolCallId")))
    title = [element("h3", text("Sub-agent"))] if below else []
    return call(node.part, *title, *below, *([conversation] if conversation is not None else []))


def part_of(part: Part) -> Safe:
    """Return a part as HTML. The part must not be a tool call."""
    kind = str(part.get("type", ""))
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
            pieces = [part_of(piece) for piece in objects(part, "parts")]
            return element("div", element("h3", text("Sent during the answer")), *pieces, klass="steering")
        case _:
            return _BY_TYPE.get(kind, _other)(part)


def _reasoning(content: str, name: str) -> Safe:
    if not content.strip():
        return Safe("")
    title = joined(element("span", text(name), klass="tool"), element("span", text(_brief(content)), klass="brief"))
    inside = element("div", rendered(content), klass="inside text", dir="auto")
    return element("details", element("summary", title), inside, klass="reasoning")


def _file(part: Part) -> Safe:
    """Return a picture or text file, embedded in the page, or the name of any other file."""
    url, media_type = str(part.get("url", "")), str(part.get("mediaType", ""))
    name = str(part.get("filename") or media_type or "file")
    if url.startswith("data:image/"):
        return element("figure", element("img", src=url, alt=name, loading="lazy"), element("figcaption", text(name)))
    if (link := address(url)) is not None:
        return element("p", element("a", text(name), href=link, rel="noopener noreferrer nofollow", target="_blank"), klass="file")
    data = decode_data_url(part)
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


def _note(content: str) -> Safe:
    return element("p", text(content), klass="note", dir="auto")


def _plan(part: Part) -> Safe:
    """Return the entries of a plan with their status."""
    lines = [element("li", text(f"{_SIGNS.get(entry.status, '·')} {entry.content}"), dir="auto") for entry in plan_of(part)]
    return element("ul", *lines, klass="plan") if lines else Safe("")


def _sub_agent(part: Part) -> Safe:
    """Return the text or reasoning of a sub-agent as HTML."""
    words = sub_agent_words(part)
    if words.thought:
        return _reasoning(words.text, f"Reasoning of {words.agent}")
    inside = element("div", rendered(words.text), klass="text", dir="auto")
    return element("div", element("h3", text(words.agent)), inside, klass="steering") if words.text.strip() else Safe("")


def _compaction(part: Part) -> Safe:
    inside = element("div", rendered("\n".join(summary_lines(part))), klass="inside text", dir="auto")
    return element("details", element("summary", element("span", text(TITLE), klass="tool")), inside, klass="reasoning")


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
    PART: _compaction,
}
"""Part type → renderer, for parts other than text, files and tool calls."""


_AUTHORS = {"user": "You", "assistant": "Assistant", "system": "System"}


def message_of(message: Message, anchor: str, children: Mapping[str, Safe]) -> Safe:
    """Return the message as an HTML article with the given anchor."""
    author = _AUTHORS[message.role]
    state = "" if message.status == "finished" else message.status
    head = element(
        "header",
        element("h2", element("a", text(author), href=f"#{anchor}")),
        moment(message.created_at),
        element("span", text(state), klass="state bad") if state else Safe(""),
    )
    body = joined(*(node_of(node, children) for node in nest(message.parts)))
    if message.role == "system":
        summary = element("summary", element("span", text("Instructions"), klass="tool"))
        body = element("details", summary, element("div", body, klass="inside"), klass="reasoning")
    return element("article", head, body, _footer(message), id=anchor, klass=message.role)


def first_line(message: Message, limit: int = 100) -> str:
    """Return the start of a message's text."""
    words = next((str(part["text"]) for part in message.parts if part.get("type") == "text" and str(part.get("text", "")).strip()), "")
    return _brief(words, limit) or "(no text)"


def moment(ms: int) -> Safe:
    """Return a time as HTML, or nothing if it is unknown."""
    if not 0 < ms <= LATEST:
        return Safe("")
    at = datetime.fromtimestamp(ms / 1000, UTC)
    return element("time", text(f"{at:%Y-%m-%d %H:%M} UTC"), datetime=f"{at:%Y-%m-%dT%H:%M:%SZ}")


def money(nano: int) -> str:
    """Format an amount in nano-dollars as dollars."""
    dollars = nano / 1_000_000_000
    return f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.4f}"


def tokens(usage: Usage) -> str:
    """Format token counts as `1,200 tokens in, 340 out`; empty if unknown."""
    counts = [f"{count:,} {word}" for count, word in ((usage.input, "tokens in"), (usage.output, "out")) if count is not None]
    return ", ".join(counts)


def _footer(message: Message) -> Safe:
    """Return the model, tokens, cost and duration of an answer."""
    steps = steps_of(message)
    model, provider = message.metadata.get("model"), message.metadata.get("provider")
    facts = [f"{model}@{provider}" if provider else str(model)] if model else []
    usage = Usage()
    for step in steps:
        usage += Usage.from_json(obj(step, "usage"))
    costs = [cost for step in steps if type(cost := step.get("cost")) is int]
    ms = model_ms(message.metadata)
    facts += [words] if (words := tokens(usage)) else []
    facts += [money(sum(costs))] if costs else []
    facts += [f"{ms / 1000:,.1f} s"] if ms is not None else []
    return element("footer", *(element("span", text(words)) for words in facts)) if facts else Safe("")
