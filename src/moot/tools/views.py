"""Descriptions of tool calls for people: title, details and output, for every interface that shows calls."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from moot.errors import UsageError
from moot.plugins import TOOLS
from moot.tools.catalogue import provided_tool
from moot.tools.schema import parse
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.tool import Tool, ToolOutput, View

_log = logging.getLogger(__name__)


def doing(name: str, arguments: Json) -> View:
    """Describe a running call."""
    return _of(name, arguments, lambda found, parsed: found.doing(parsed)) or _unknown(name, arguments)


def done(name: str, arguments: Json, output: Json, *, value: Json = None, error: bool = False) -> View:
    """Describe a finished call. `value` is the tool's structured result, if known."""
    text = output_text(output)
    view = _of(name, arguments, lambda found, parsed: found.done(parsed, ToolOutput(text, value, error)))
    if view is None:
        return replace(_unknown(name, arguments), body=text, language="text" if isinstance(output, str) else "json")
    return replace(view, body=text, language="text") if error and not view.body else view


def reads(name: str) -> bool:
    """Return True if the tool only reads. The output of such a call is for the model and is not shown by default."""
    found = known_tool(name)
    return found is not None and found.effects <= {"read"} and name not in ("ask_user", "todo")


def output_text(output: Json) -> str:
    """Return a call's output as text: the text parts of `{type: content, value: [parts]}`, other values as JSON."""
    if isinstance(output, str):
        return output
    if isinstance(output, dict) and output.get("type") == "content" and isinstance(parts := output.get("value"), list):
        return "\n".join(_part_text(part) for part in parts if isinstance(part, dict))
    return dumps(output).decode() if output is not None else ""


def _part_text(part: JsonObject) -> str:
    text = part.get("text")
    return text if isinstance(text, str) else f"[{part.get('filename') or part.get('type') or 'file'}, {part.get('mediaType', 'unknown')}]"


def known_tool(name: str) -> Tool | None:
    """Return the tool of moot or of an installed package with this name, or None for other tools, such as those of outside agents."""
    if name not in TOOLS:
        return None
    try:
        return provided_tool(name)
    except UsageError:
        return None


def _of(name: str, arguments: Json, view: Callable[[Tool, object], View]) -> View | None:
    found = known_tool(name)
    if found is None:
        return None
    parsed = parse(found, arguments)
    if isinstance(parsed, str):
        return None
    try:
        return view(found, parsed)
    except Exception:  # noqa: BLE001  an error in a plugin must not stop the interface
        _log.exception("Could not describe a call of tool %s", name)
        return None


_DESCRIPTIVE = ("command", "file_path", "path", "notebook_path", "url", "query", "pattern", "description")
"""Names of the arguments that best describe a call to any tool."""


def _unknown(name: str, arguments: Json) -> View:
    values = arguments if isinstance(arguments, dict) else {}
    text = next((value for key in _DESCRIPTIVE if isinstance(value := values.get(key), str) and value), "")
    return View(name or "tool", text or (dumps(arguments).decode() if arguments else ""))
