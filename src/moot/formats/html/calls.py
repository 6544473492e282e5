"""A tool call with its output: a line that says what was done, and all of it inside."""

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
    "approval-requested": ("was asked about", ""),
}
_BRIEF = 200
"""Characters; as many of them are seen as the line holds."""
_LANGUAGES = {"command": "bash"}


def call(part: Part, *below: Safe) -> Safe:
    """The call, closed until somebody opens it; `below`: what a sub-agent said for it."""
    word, klass = _STATES.get(str(part.get("state")), ("has no output", ""))
    title = joined(
        element("span", text(tool_name(part) or "tool"), klass="tool"),
        element("span", text(_brief(part.get("input"))), klass="brief"),
        element("span", text(word), klass=f"state {klass}".strip()),
    )
    inside = [element("h3", text("Input")), *values(part.get("input"))]
    if "output" in part:
        inside += [element("h3", text("Output")), *values(part["output"])]
    if part.get("errorText"):
        inside += [element("h3", text("Error")), *values(part["errorText"])]
    if part.get("state") == "output-denied":
        inside += [element("h3", text("Denied")), element("p", text(output_text(part)), dir="auto")]
    return element("details", element("summary", title), element("div", *inside, *below, klass="inside"), klass="call")


def values(given: Json) -> list[Safe]:
    """A value as a person reads it: text as text and by its name, everything else as JSON."""
    if isinstance(given, str):
        return [block(given)]
    if isinstance(given, list) and given and all(_is_text(one) for one in given):
        return [block(str(one["text"])) for one in given if isinstance(one, dict)]
    texts = {name: one for name, one in given.items() if _reads_as_text(name, one)} if isinstance(given, dict) else {}
    if not isinstance(given, dict) or not texts:
        return [block(pretty(given), "json")]
    rest = {name: one for name, one in given.items() if name not in texts}
    named = len(given) > 1 or "command" not in given
    shown = [
        piece for name, one in texts.items() for piece in (_name(name) if named else Safe(""), block(str(one), _LANGUAGES.get(name, "")))
    ]
    return [*shown, block(pretty(rest), "json")] if rest else shown


def _is_text(value: Json) -> bool:
    return isinstance(value, dict) and value.get("type") == "text" and isinstance(value.get("text"), str)


def _reads_as_text(name: str, value: Json) -> bool:
    """Whether JSON would hide its lines."""
    return isinstance(value, str) and (name in _LANGUAGES or "\n" in value)


def _name(name: str) -> Safe:
    return element("p", text(name), klass="name")


def _brief(given: Json) -> str:
    """The first words of the input: mostly a path, a command or a question."""
    if isinstance(given, dict):
        given = next((one for one in given.values() if isinstance(one, str) and one.strip()), "")
    line = " ".join(str(given or "").split())
    return line if len(line) <= _BRIEF else f"{line[: _BRIEF - 1]}…"
