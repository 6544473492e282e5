"""A tool call with its output: a line that says what was done, and all of it inside."""

from __future__ import annotations

from moot.formats._writing import pretty
from moot.formats.html.code import block
from moot.formats.html.elements import Safe, element, joined, text
from moot.types.canonical import Json
from moot.types.part import Part, tool_name

__all__ = ["call", "value"]

_STATES = {
    "output-available": ("done", "ok"),
    "output-error": ("failed", "bad"),
    "output-denied": ("denied", "bad"),
    "approval-requested": ("was asked about", ""),
}
_BRIEF = 90


def call(part: Part, *below: Safe) -> Safe:
    """The call, closed until somebody opens it; `below`: what a sub-agent said for it."""
    word, klass = _STATES.get(str(part.get("state")), ("has no output", ""))
    title = joined(
        element("span", text(tool_name(part) or "tool"), klass="tool"),
        element("span", text(_brief(part.get("input"))), klass="brief"),
        element("span", text(word), klass=f"state {klass}".strip()),
    )
    inside = [element("h3", text("Input")), value(part.get("input"), "bash" if _is_command(part) else "")]
    if "output" in part:
        inside += [element("h3", text("Output")), value(part["output"])]
    if part.get("errorText"):
        inside += [element("h3", text("Error")), value(part["errorText"])]
    return element("details", element("summary", title), element("div", *inside, *below, klass="inside"), klass="call")


def value(given: Json, language: str = "") -> Safe:
    """A value as a person reads it: text as text, everything else as JSON."""
    if language and isinstance(given, dict) and isinstance(command := given.get("command"), str):
        return block(command, language)
    if isinstance(given, str):
        return block(given)
    return block(pretty(given), "json")


def _is_command(part: Part) -> bool:
    given = part.get("input")
    return isinstance(given, dict) and isinstance(given.get("command"), str) and len(given) == 1


def _brief(given: Json) -> str:
    """The first words of the input: mostly a path, a command or a question."""
    if isinstance(given, dict):
        given = next((one for one in given.values() if isinstance(one, str) and one.strip()), "")
    line = " ".join(str(given or "").split())
    return line if len(line) <= _BRIEF else f"{line[: _BRIEF - 1]}…"
