"""A message: author, time, parts, usage and cost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from moot.formats._writing import steps_of
from moot.formats.html.elements import Safe, element, joined, text
from moot.formats.html.parts import part_of
from moot.types.canonical import JsonObject
from moot.types.message import Message
from moot.types.usage import Usage

__all__ = ["first_line", "message_of", "moment", "money", "tokens"]

_AUTHORS = {"user": "You", "assistant": "Assistant", "system": "System"}
_NANO = 1_000_000_000
_LATEST = 253_402_300_799_000
"""ms; the end of the year 9999."""


def message_of(message: Message, anchor: str, children: Mapping[str, Safe]) -> Safe:
    """Return the message as an article with that anchor."""
    author = _AUTHORS[message.role]
    state = "" if message.status == "finished" else message.status
    head = element(
        "header",
        element("h2", element("a", text(author), href=f"#{anchor}")),
        moment(message.created_at),
        element("span", text(state), klass="state bad") if state else Safe(""),
    )
    parts = [part_of(part, children) for part in message.parts]
    body = joined(*parts)
    if message.role == "system":
        summary = element("summary", element("span", text("Instructions"), klass="tool"))
        body = element("details", summary, element("div", body, klass="inside"), klass="reasoning")
    return element("article", head, body, _footer(message), id=anchor, klass=message.role)


def first_line(message: Message, limit: int = 100) -> str:
    """Return the start of a message's text."""
    words = next((str(part["text"]) for part in message.parts if part.get("type") == "text" and str(part.get("text", "")).strip()), "")
    line = " ".join(words.split())
    if not line:
        return "(no text)"
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def moment(ms: int) -> Safe:
    """Return a time, or nothing if it is unknown."""
    if not 0 < ms <= _LATEST:
        return Safe("")
    at = datetime.fromtimestamp(ms / 1000, UTC)
    return element("time", text(f"{at:%Y-%m-%d %H:%M} UTC"), datetime=f"{at:%Y-%m-%dT%H:%M:%SZ}")


def money(nano: int) -> str:
    """Format nano-dollars."""
    dollars = nano / _NANO
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
        usage += _usage(step)
    costs = [cost for step in steps if type(cost := step.get("cost")) is int]
    times = [ms for step in steps if type(ms := step.get("ms")) is int]
    facts += [words] if (words := tokens(usage)) else []
    facts += [money(sum(costs))] if costs else []
    facts += [f"{sum(times) / 1000:,.1f} s"] if times else []
    return element("footer", *(element("span", text(words)) for words in facts)) if facts else Safe("")


def _usage(step: JsonObject) -> Usage:
    usage = step.get("usage")
    return Usage.from_json(usage) if isinstance(usage, dict) else Usage()
