"""What a tool call is about, by the tool's own words; for a tool that is not known here, by its name and arguments."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from moot.errors import UsageError
from moot.plugins import TOOLS
from moot.tools.offers import tool
from moot.tools.schema import parse
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.tool import Tool, ToolOutput, View

__all__ = ["doing", "done", "output_text", "reads"]

_log = logging.getLogger(__name__)


def doing(name: str, arguments: Json) -> View:
    """The call while it runs."""
    return _of(name, arguments, lambda found, parsed: found.doing(parsed)) or _unknown(name, arguments)


def done(name: str, arguments: Json, output: Json, *, value: Json = None, error: bool = False) -> View:
    """The call when it is over; `value` is what the tool gave for faces, where that is known."""
    text = output_text(output)
    view = _of(name, arguments, lambda found, parsed: found.done(parsed, ToolOutput(text, value, error)))
    if view is None:
        return replace(_unknown(name, arguments), body=text, language="text" if isinstance(output, str) else "json")
    return replace(view, body=text, language="text") if error and not view.body else view


def reads(name: str) -> bool:
    """Whether calls of this tool only look: what they found is for the model, and people are content with knowing of it."""
    found = _tool(name)
    return found is not None and found.effects <= {"read"} and name not in ("ask_user", "todo")


def output_text(output: Json) -> str:
    """A call's output as text: `{type: content, value: [parts]}` by its text parts, other JSON as it is."""
    if isinstance(output, str):
        return output
    if isinstance(output, dict) and output.get("type") == "content" and isinstance(parts := output.get("value"), list):
        return "\n".join(_part_text(part) for part in parts if isinstance(part, dict))
    return dumps(output).decode() if output is not None else ""


def _part_text(part: JsonObject) -> str:
    text = part.get("text")
    return text if isinstance(text, str) else f"[{part.get('filename') or part.get('type') or 'file'}, {part.get('mediaType', 'unknown')}]"


def _tool(name: str) -> Tool | None:
    if name not in TOOLS:
        return None
    try:
        return tool(name)
    except UsageError:
        return None


def _of(name: str, arguments: Json, view: Callable[[Tool, object], View]) -> View | None:
    found = _tool(name)
    if found is None:
        return None
    parsed = parse(found, arguments)
    if isinstance(parsed, str):
        return None
    try:
        return view(found, parsed)
    except Exception:  # noqa: BLE001  a plugin's drawing must not end the run's
        _log.exception("the tool %s could not be drawn", name)
        return None


_TELLING = ("command", "file_path", "path", "notebook_path", "url", "query", "pattern", "description")
"""Arguments that say most of a call, whatever tool it is."""


def _unknown(name: str, arguments: Json) -> View:
    given = arguments if isinstance(arguments, dict) else {}
    telling = next((value for key in _TELLING if isinstance(value := given.get(key), str) and value), "")
    return View(name or "tool", telling or (dumps(arguments).decode() if arguments else ""))
