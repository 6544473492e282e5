"""Tool parts: the changes that each tool chunk makes, and the parsing of incomplete JSON arguments while they stream."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.message import Part

_TOKEN = re.compile(r'\s+|"(?:[^"\\]|\\.)*"|[{}\[\],:]|-?\d[\d.eE+-]*|true|false|null', re.DOTALL)
_OPEN_STRING = re.compile(r'"((?:[^"\\]|\\(?:u[0-9a-fA-F]{4}|[^u]))*)', re.DOTALL)
_CLOSE = {"{": "}", "[": "]"}


class NoValue(Exception):
    """Raised if incomplete JSON has no value yet."""


def partial_json(text: str) -> Json:
    """Parse JSON text that may be truncated. Close strings and brackets, and drop incomplete keys and numbers.

    Raise NoValue if there is no value yet.
    """
    try:
        return canonical.loads(text)
    except ValueError:
        pass
    try:
        return canonical.loads(_completed(text))
    except ValueError as error:
        raise NoValue from error


def _completed(text: str) -> str:
    """Return the text up to its last complete value, with all open brackets closed."""
    stack: list[str] = []
    sound = 0
    key = False  # True if the next string of an object is a key
    position = 0
    while (match := _TOKEN.match(text, position)) is not None:
        token, position = match.group(), match.end()
        if token in _CLOSE:
            stack.append(token)
            key = token == "{"
            if len(stack) > canonical.MAX_DEPTH:
                raise NoValue
        elif token in ("}", "]"):
            if not stack:
                break
            stack.pop()
            key = False
        elif token in (",", ":"):
            key = token == "," and bool(stack) and stack[-1] == "{"
            continue
        elif token.isspace() or key:
            continue
        sound = position
    closed = "".join(_CLOSE[bracket] for bracket in reversed(stack))
    if position < len(text) and not key and (rest := _tail(text[position:])):
        return text[:position] + rest + closed
    return re.sub(r"(?<=\d)[.eE+-]+$", "", text[:sound]) + closed


def _tail(rest: str) -> str:
    """Complete an incomplete string or literal. Return an empty string if it has no content yet."""
    if rest.startswith('"') and (match := _OPEN_STRING.match(rest)) is not None:
        return f'"{match.group(1)}"'
    return next((word for word in ("true", "false", "null") if word.startswith(rest)), "")


Output: TypeAlias = Callable[[Part, Chunk], Part]

_OF_A_STATE = frozenset({"input", "output", "errorText", "rawInput", "inputEncoding", "preliminary"})
"""Fields that belong to one state of a call and are dropped in the next state."""

_APPROVAL = {"approvalDescriptor": "descriptor", "reason": "requestReason", "signature": "signature"}


def new_part(chunk: Chunk, *, dynamic: bool) -> Part:
    """Return the part for a new call, with only its id and name."""
    if dynamic:
        return {"type": "dynamic-tool", "toolName": chunk["toolName"], "toolCallId": chunk["toolCallId"]}
    return {"type": f"tool-{chunk['toolName']}", "toolCallId": chunk["toolCallId"]}


def input_start(part: Part, chunk: Chunk) -> Part:
    encoding = chunk.get("inputEncoding")
    return _renewed(_named(part, chunk), chunk, "input-streaming", {"inputEncoding": encoding} if encoding is not None else {})


def input_available(part: Part, chunk: Chunk) -> Part:
    return _renewed(_named(part, chunk), chunk, "input-available", {"input": chunk.get("input")})


def input_error(part: Part, chunk: Chunk) -> Part:
    untitled = {key: value for key, value in chunk.items() if key != "title"}  # clients ignore the title of this chunk
    fields: JsonObject = {"input": chunk.get("input"), "errorText": chunk.get("errorText", "")}
    return _renewed(_named(part, chunk), untitled, "output-error", fields)


def output_available(part: Part, chunk: Chunk) -> Part:
    fields: JsonObject = {"input": part["input"]} if "input" in part else {}
    fields["output"] = chunk.get("output")
    if chunk.get("preliminary") is not None:
        fields["preliminary"] = chunk["preliminary"]
    return _renewed(part, chunk, "output-available", fields)


def output_error(part: Part, chunk: Chunk) -> Part:
    kept = ("input",) if part.get("type") == "dynamic-tool" else ("input", "rawInput")
    fields: JsonObject = {name: part[name] for name in kept if name in part}
    fields["errorText"] = chunk.get("errorText", "")
    return _renewed(part, chunk, "output-error", fields)


def output_denied(part: Part, chunk: Chunk) -> Part:
    denied: Part = {**part, "state": "output-denied"}
    if not isinstance(id := chunk.get("approvalId"), str):
        return denied
    known, reason = part.get("approval"), chunk.get("reason")
    approval: JsonObject = {"id": id, **(known if isinstance(known, dict) else {})}
    if approval.get("approved") is True:  # the user allowed the call, but then the agent refused it
        return output_error(part, {"errorText": reason or "The agent refused the call."})
    approval["approved"] = False
    if isinstance(reason, str) and not approval.get("reason"):
        approval["reason"] = reason
    return {**denied, "approval": approval}


def approval_request(part: Part, chunk: Chunk) -> Part:
    approval: JsonObject = {"id": chunk["approvalId"]}
    approval |= {field: chunk[name] for name, field in _APPROVAL.items() if chunk.get(name) is not None}
    if "inputSchemaInput" in chunk:
        approval["inputSchemaInput"] = chunk["inputSchemaInput"]
    if chunk.get("isAutomatic") is True:
        approval["isAutomatic"] = True
    return {**part, "state": "approval-requested", "approval": approval}


def approval_response(part: Part, chunk: Chunk) -> Part:
    known = part.get("approval")
    approval: JsonObject = {**(known if isinstance(known, dict) else {}), "id": chunk["approvalId"], "approved": chunk["approved"]}
    if chunk.get("reason") is not None:
        approval["reason"] = chunk["reason"]
    answered: Part = {**part, "state": "approval-responded", "approval": approval}
    if chunk.get("providerExecuted") is not None:
        answered["providerExecuted"] = chunk["providerExecuted"]
    if chunk.get("providerMetadata") is not None:
        answered["callProviderMetadata"] = chunk["providerMetadata"]
    return answered


OUTPUTS: dict[str, Output] = {
    "tool-output-available": output_available,
    "tool-output-error": output_error,
    "tool-output-denied": output_denied,
    "tool-approval-request": approval_request,
}
"""For each type of chunk that refers to a call only by its id, the function that applies it."""


def _named(part: Part, chunk: Chunk) -> Part:
    if part.get("type") == "dynamic-tool":
        return {**part, "toolName": chunk["toolName"]}
    return {**part, "type": f"tool-{chunk['toolName']}"}


def _renewed(part: Part, chunk: Chunk, state: str, fields: JsonObject) -> Part:
    renewed: Part = {name: value for name, value in part.items() if name not in _OF_A_STATE}
    renewed["state"] = state
    renewed |= fields
    for name in ("title", "toolMetadata", "providerExecuted"):
        if chunk.get(name) is not None:
            renewed[name] = chunk[name]
    if chunk.get("providerMetadata") is not None:
        of_result = state in ("output-available", "output-error")
        renewed["resultProviderMetadata" if of_result else "callProviderMetadata"] = chunk["providerMetadata"]
    return renewed
