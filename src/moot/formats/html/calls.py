"""A tool call with its output: a summary line, and the details details."""

from __future__ import annotations

from moot.formats._steps import output_text
from moot.formats._writing import pretty
from moot.formats.html.code import block
from moot.formats.html.elements import Safe, element, joined, text
from moot.types.canonical import Json
from moot.types.part import Part, tool_name

__all__ = ["call", "values"]

_STATES = {
    "output-available": ("done", "ok"),
    "output-error": ("failed", "bad"),
    "output-denied": ("denied", "bad"),
    "approval-requested": ("waiting for approval", ""),
}
_SUMMARY_LENGTH = 200
"""Maximum characters of a summary; the line shows as many as fit."""
_LANGUAGES = {"command": "bash"}


def call(part: Part, *below: Safe) -> Safe:
    """Return the call, collapsed. `below` holds the conversations of sub-agents that it started."""
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
    """Return a value for people: texts under their names, everything else as JSON."""
    if isinstance(value, str):
        return [block(value)]
    if isinstance(value, list) and value and all(_is_text(one) for one in value):
        return [block(str(one["text"])) for one in value if isinstance(one, dict)]
    texts = {name: one for name, one in value.items() if _reads_as_text(name, one)} if isinstance(value, dict) else {}
    if not isinstance(value, dict) or not texts:
        return [block(pretty(value), "json")]
    rest = {name: one for name, one in value.items() if name not in texts}
    named = len(value) > 1 or "command" not in value
    shown = [
        piece for name, one in texts.items() for piece in (_name(name) if named else Safe(""), block(str(one), _LANGUAGES.get(name, "")))
    ]
    return [*shown, block(pretty(rest), "json")] if rest else shown


def _is_text(value: Json) -> bool:
    return isinstance(value, dict) and value.get("type") == "text" and isinstance(value.get("text"), str)


def _reads_as_text(name: str, value: Json) -> bool:
    """Return whether JSON would hide the lines of a value."""
    return isinstance(value, str) and (name in _LANGUAGES or "\n" in value)


def _name(name: str) -> Safe:
    return element("p", text(name), klass="name")


def _summary(value: Json) -> str:
    """Return the start of the input, which is mostly a path, a command or a question."""
    if isinstance(value, dict):
        value = next((one for one in value.values() if isinstance(one, str) and one.strip()), "")
    line = " ".join(str(value or "").split())
    return line if len(line) <= _SUMMARY_LENGTH else f"{line[: _SUMMARY_LENGTH - 1]}…"
