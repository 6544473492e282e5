"""Permission requests of Claude Code as calls for moot's policy and the user, and the responses in its form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moot.tools.schema import subject_of
from moot.types.canonical import Json, JsonObject, dumps, loads_exact
from moot.types.effect import Effect
from moot.types.outside import Option, OutsideAnswer, OutsideCall
from moot.types.tool import Tool

QUESTION = "AskUserQuestion"
_YES, _NO = Option("yes", "Yes", "allow_once"), Option("no", "No", "reject_once")
_HELD = "as long as this run lasts"
_EVERYTHING: frozenset[Effect] = frozenset({"read", "write", "execute", "network"})


@dataclass(frozen=True, slots=True)
class _Like:
    """The equivalent of a Claude Code tool in moot's terms."""

    effects: frozenset[Effect]
    subject: str = ""
    """The argument that rules match."""
    tool: str = ""
    """The equivalent tool of moot."""


def _like(*effects: Effect, subject: str = "", tool: str = "") -> _Like:
    return _Like(frozenset(effects), subject, tool)


_TOOLS: Mapping[str, _Like] = {
    "Bash": _like("execute", subject="command", tool="shell"),
    "Edit": _like("write", subject="file_path", tool="edit_file"),
    "Glob": _like("read", subject="path", tool="find_files"),
    "Grep": _like("read", subject="path", tool="search_files"),
    "LS": _like("read", subject="path", tool="list_files"),
    "MultiEdit": _like("write", subject="file_path", tool="edit_file"),
    "NotebookEdit": _like("write", subject="notebook_path", tool="edit_file"),
    "Read": _like("read", subject="file_path", tool="read_file"),
    "Task": _like("read", subject="description"),
    "TodoWrite": _like("read"),
    "WebFetch": _like("network", subject="url", tool="fetch_url"),
    "WebSearch": _like("network", subject="query", tool="web_search"),
    "Write": _like("write", subject="file_path", tool="write_file"),
}


def call_of(request: JsonObject, id: str, own: Mapping[str, Tool]) -> OutsideCall:
    """Return the call of a `can_use_tool` request. `id` is the call's id in the message, `own` are moot's tools by Claude Code's names."""
    name = str(request.get("tool_name", ""))
    value = request.get("input")
    arguments: JsonObject = value if isinstance(value, dict) else {}
    like = _TOOLS.get(name, _Like(_EVERYTHING))
    subject = str(arguments.get(like.subject, "")) if like.subject else ""
    if (tool := own.get(name)) is not None:
        like, subject = _Like(tool.effects, tool=tool.name), subject_of(arguments)
    text = request.get("title") or request.get("description") or request.get("display_name")
    return OutsideCall(
        tool_call=id,
        name=name,
        title=str(text or name),
        arguments=dumps(arguments),
        effects=like.effects,
        subject=subject,
        options=(_YES, *_suggested(request), _NO),
        like=like.tool,
        editable=True,
    )


def reply_to(request: JsonObject, answer: OutsideAnswer) -> JsonObject:
    """Return the response to `can_use_tool`."""
    if not answer.approved:
        return {"behavior": "deny", "message": answer.reason or "The user denied this call."}
    value = request.get("input")
    arguments: Json = loads_exact(answer.arguments) if answer.arguments is not None else value
    reply: JsonObject = {"behavior": "allow", "updatedInput": arguments if isinstance(arguments, dict) else {}}
    chosen = answer.option.id if answer.option is not None else ""
    number = chosen.removeprefix("suggestion-")
    suggestions = _suggestions(request)
    if number != chosen and number.isdecimal() and int(number) < len(suggestions):
        # moot stores lasting permissions itself, so nothing is written into the agent's own settings
        reply["updatedPermissions"] = [{**suggestions[int(number)], "destination": "session"}]
    return reply


def _suggestions(request: JsonObject) -> list[JsonObject]:
    offered = request.get("permission_suggestions")
    return [item for item in offered if isinstance(item, dict)] if isinstance(offered, list) else []


def _suggested(request: JsonObject) -> tuple[Option, ...]:
    """Return its suggestions of what to allow with a yes, as further options."""
    labels = [_label(item) for item in _suggestions(request)]
    return tuple(Option(f"suggestion-{at}", label, "allow_always") for at, label in enumerate(labels) if label)


def _label(suggestion: JsonObject) -> str:
    """Return the label of a suggestion; empty for one that can't be described, so that it is not offered."""
    match suggestion.get("type"):
        case "addRules" if suggestion.get("behavior") == "allow":
            rules = suggestion.get("rules")
            texts = [_rule(rule) for rule in rules if isinstance(rule, dict)] if isinstance(rules, list) else []
            return f"Yes, and {', '.join(texts)} {_HELD}" if texts else ""
        case "addDirectories":
            folders = suggestion.get("directories")
            names = ", ".join(str(folder) for folder in folders) if isinstance(folders, list) else ""
            return f"Yes, and commands that change files in {names} {_HELD}" if names else ""
        case "setMode" if suggestion.get("mode") == "acceptEdits":
            return f"Yes, and all edits of files {_HELD}"
        case _:
            return ""


def _rule(rule: JsonObject) -> str:
    name, content = str(rule.get("toolName", "")), rule.get("ruleContent")
    return f"{name}({content})" if content else name
