"""Permission requests and questions of Claude Code, converted to calls for moot's policy and the user, and the responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from moot.convert.vendor import as_list, as_object
from moot.tools.schema import as_called, subject_in
from moot.types.approval import Effect, Option, OutsideAnswer, OutsideCall
from moot.types.canonical import Json, JsonObject, dumps, loads_exact
from moot.types.tool import Tool


def with_questions(call: OutsideCall, request: JsonObject) -> OutsideCall:
    """Return the call with its questions in moot's format."""
    questions: list[Json] = []
    for question in _questions(request):
        options: list[Json] = [
            {"label": str(option.get("label", "")), "description": str(option.get("description", ""))}
            for option in as_list(question.get("options"))
            if isinstance(option, dict)
        ]
        header, text = str(question.get("header") or "Question"), str(question.get("question", ""))
        questions.append({"header": header, "text": text, "options": options, "multiple": question.get("multiSelect") is True})
    return replace(call, questions=questions, editable=False)


def answers_to(request: JsonObject, answer: OutsideAnswer) -> JsonObject:
    """Return the answers, keyed by the questions' texts."""
    if not answer.approved:
        return {"behavior": "deny", "message": answer.reason or "The user did not answer."}
    answers: JsonObject = {}
    for question, reply in zip(_questions(request), as_list(answer.value), strict=False):
        texts = [str(text) for text in reply] if isinstance(reply, list) else [str(reply)]
        answers[str(question.get("question", ""))] = ", ".join(texts) or "(no answer)"
    return {"behavior": "allow", "updatedInput": {**as_object(request.get("input")), "answers": answers}}


def _questions(request: JsonObject) -> list[JsonObject]:
    questions = as_list(as_object(request.get("input")).get("questions"))
    return [question for question in questions if isinstance(question, dict)]


QUESTION = "AskUserQuestion"
_YES, _NO = Option("yes", "Yes", "allow_once"), Option("no", "No", "reject_once")
_HELD = "for the rest of this run"
_TOOLS: Mapping[str, tuple[Effect, str, str]] = {
    "Bash": ("execute", "command", "shell"),
    "Edit": ("write", "file_path", "edit_file"),
    "Glob": ("read", "path", "find_files"),
    "Grep": ("read", "path", "search_files"),
    "LS": ("read", "path", "list_files"),
    "MultiEdit": ("write", "file_path", "edit_file"),
    "NotebookEdit": ("write", "notebook_path", "edit_file"),
    "Read": ("read", "file_path", "read_file"),
    "Task": ("read", "description", ""),
    "TodoWrite": ("read", "", ""),
    "WebFetch": ("network", "url", "fetch_url"),
    "WebSearch": ("network", "query", "web_search"),
    "Write": ("write", "file_path", "write_file"),
}
"""For each Claude Code tool: its effect, the argument that rules match, and the equivalent tool of moot."""


def call_of(request: JsonObject, id: str, own: Mapping[str, Tool]) -> OutsideCall:
    """Return the call that a `can_use_tool` request is about. `id` is the call's id in the message.
    `own` maps Claude Code's names to moot's tools.
    """
    name = str(request.get("tool_name", ""))
    arguments = as_object(request.get("input"))
    effects: frozenset[Effect] = frozenset({"read", "write", "execute", "network"})
    subject = like = ""
    if (tool := own.get(name)) is not None:
        effects, subject, like = as_called(tool, arguments).effects, subject_in(arguments), tool.name
    elif name in _TOOLS:
        effect, argument, like = _TOOLS[name]
        effects = frozenset[Effect]({effect})
        subject = str(arguments.get(argument, "")) if argument else ""
    text = request.get("title") or request.get("description") or request.get("display_name")
    labels = enumerate(map(_label, _suggestions(request)))
    suggested = tuple(Option(f"suggestion-{at}", label, "allow_always") for at, label in labels if label)
    return OutsideCall(
        tool_call=id,
        name=name,
        title=str(text or name),
        arguments=dumps(arguments),
        effects=effects,
        subject=subject,
        options=(_YES, *suggested, _NO),
        like=like,
        editable=True,
    )


def reply_to(request: JsonObject, answer: OutsideAnswer) -> JsonObject:
    """Return the response to `can_use_tool`."""
    if not answer.approved:
        return {"behavior": "deny", "message": answer.reason or "The user denied this call."}
    arguments = loads_exact(answer.arguments) if answer.arguments is not None else request.get("input")
    reply: JsonObject = {"behavior": "allow", "updatedInput": as_object(arguments)}
    chosen = answer.option.id if answer.option is not None else ""
    number = chosen.removeprefix("suggestion-")
    suggestions = _suggestions(request)
    if number != chosen and number.isdecimal() and int(number) < len(suggestions):
        # moot stores lasting permissions itself, so nothing is written into the agent's own settings
        reply["updatedPermissions"] = [{**suggestions[int(number)], "destination": "session"}]
    return reply


def _suggestions(request: JsonObject) -> list[JsonObject]:
    """Return the program's suggestions for lasting permissions."""
    return [item for item in as_list(request.get("permission_suggestions")) if isinstance(item, dict)]


def _label(suggestion: JsonObject) -> str:
    """Return the label of a suggestion, or an empty string if there is no label for it, so that it must not be offered."""
    match suggestion.get("type"):
        case "addRules" if suggestion.get("behavior") == "allow":
            rules = [rule for rule in as_list(suggestion.get("rules")) if isinstance(rule, dict)]
            names = [(str(rule.get("toolName", "")), rule.get("ruleContent")) for rule in rules]
            texts = [f"{name}({content})" if content else name for name, content in names]
            return f"Yes, and {', '.join(texts)} {_HELD}" if texts else ""
        case "addDirectories":
            folders = ", ".join(map(str, as_list(suggestion.get("directories"))))
            return f"Yes, and commands that change files in {folders} {_HELD}" if folders else ""
        case "setMode" if suggestion.get("mode") == "acceptEdits":
            return f"Yes, and all file edits {_HELD}"
        case _:
            return ""
