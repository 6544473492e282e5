"""Permission requests and questions of Claude Code as calls for moot's policy and the user, and the responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from moot.tools.schema import subject_of
from moot.types.approval import Effect, Option, OutsideAnswer, OutsideCall
from moot.types.canonical import Json, JsonObject, dumps, loads_exact
from moot.types.tool import Tool


def with_questions(call: OutsideCall, request: JsonObject) -> OutsideCall:
    """Return the call with its questions in moot's form."""
    questions: list[Json] = []
    for question in _questions(request):
        offered = question.get("options")
        options: list[Json] = [
            {"label": str(option.get("label", "")), "description": str(option.get("description", ""))}
            for option in (offered if isinstance(offered, list) else [])
            if isinstance(option, dict)
        ]
        header, text = str(question.get("header") or "Question"), str(question.get("question", ""))
        questions.append({"header": header, "text": text, "options": options, "multiple": question.get("multiSelect") is True})
    return replace(call, questions=questions, editable=False)


def answers_to(request: JsonObject, answer: OutsideAnswer) -> JsonObject:
    """Return the answers, keyed by the questions' texts."""
    if not answer.approved:
        return {"behavior": "deny", "message": answer.reason or "The user did not answer."}
    replies = answer.value if isinstance(answer.value, list) else []
    answers: JsonObject = {}
    for question, reply in zip(_questions(request), replies, strict=False):
        texts = [str(text) for text in reply] if isinstance(reply, list) else [str(reply)]
        answers[str(question.get("question", ""))] = ", ".join(texts) or "(no answer)"
    arguments = request.get("input")
    return {"behavior": "allow", "updatedInput": {**(arguments if isinstance(arguments, dict) else {}), "answers": answers}}


def _questions(request: JsonObject) -> list[JsonObject]:
    arguments = request.get("input")
    questions = arguments.get("questions") if isinstance(arguments, dict) else None
    return [question for question in questions if isinstance(question, dict)] if isinstance(questions, list) else []


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
    """Return the program's suggestions of lasting permissions as further options."""
    labels = [_label(item) for item in _suggestions(request)]
    return tuple(Option(f"suggestion-{at}", label, "allow_always") for at, label in enumerate(labels) if label)


def _label(suggestion: JsonObject) -> str:
    """Return the label of a suggestion; empty if it can't be described and must not be offered."""
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
