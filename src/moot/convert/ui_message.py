"""Validation of message parts as in the AI SDK's `validateUIMessages` (versions 6 and 7), and repair of parts that it would refuse.

If an application refuses one part, it refuses the whole conversation. So moot sends only parts that both versions accept, as far as they
know the part's type. A part that can't be repaired is sent inside a `data-unknown` part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from moot.types.canonical import Json, JsonObject, dumps
from moot.types.message import Part, is_tool, tool_name

UNKNOWN = "data-unknown"
"""Type of a part that contains another program's invalid part unchanged."""

Check = Callable[[Json], bool]


def _text(value: Json) -> bool:
    return isinstance(value, str)


def _flag(value: Json) -> bool:
    return isinstance(value, bool)


def _object(value: Json) -> bool:
    return isinstance(value, dict)


def _by_provider(value: Json) -> bool:
    return isinstance(value, dict) and all(isinstance(inner, dict) for inner in value.values())


def _references(value: Json) -> bool:
    return isinstance(value, dict) and all(isinstance(inner, str) for inner in value.values())


def _one_of(*words: str) -> Check:
    return lambda value: value in words


@dataclass(frozen=True, slots=True)
class _Shape:
    """The fields of one type of part. Clients accept and ignore other fields."""

    required: Mapping[str, Check]
    optional: Mapping[str, Check]


_FINISH = _one_of("streaming", "done")
_METADATA: Mapping[str, Check] = {"providerMetadata": _by_provider}
_FILE: Mapping[str, Check] = {"mediaType": _text, "url": _text}
_PARTS: dict[str, _Shape] = {
    "text": _Shape({"text": _text}, {"state": _FINISH, **_METADATA}),
    "reasoning": _Shape({"text": _text}, {"id": _text, "state": _FINISH, **_METADATA}),
    "custom": _Shape({"kind": _text}, _METADATA),
    "source-url": _Shape({"sourceId": _text, "url": _text}, {"title": _text, **_METADATA}),
    "source-document": _Shape({"sourceId": _text, "mediaType": _text, "title": _text}, {"filename": _text, **_METADATA}),
    "file": _Shape(_FILE, {"filename": _text, "providerReference": _references, **_METADATA}),
    "reasoning-file": _Shape(_FILE, _METADATA),
    "steering-message": _Shape(
        {"id": _text, "parts": lambda value: isinstance(value, list) and not any(map(_steering_problem, value))}, {}
    ),
    "step-start": _Shape({}, {}),
}
_DATA = _Shape({}, {"id": _text})
_CALL: Mapping[str, Check] = {
    "title": _text,
    "toolMetadata": _object,
    "providerExecuted": _flag,
    "callProviderMetadata": _by_provider,
    "dynamic": lambda value: value is False,
}
_RESULT: Mapping[str, Check] = {"resultProviderMetadata": _by_provider}
_STATES: dict[str, Mapping[str, Check]] = {
    "input-streaming": {"rawInput": _text, "inputEncoding": _one_of("json", "text")},
    "input-available": {},
    "approval-requested": {},
    "approval-responded": {},
    "output-available": {"preliminary": _flag, **_RESULT},
    "output-error": _RESULT,
    "output-denied": {},
}
"""The states of a call, each with the fields that are checked only in that state."""


def _call_shape(state: str, *, dynamic: bool) -> _Shape:
    required: dict[str, Check] = {"toolCallId": _text}
    if dynamic:
        required["toolName"] = _text
    if state == "output-error":
        required["errorText"] = _text
    optional = {**_CALL, **_STATES[state]}
    return _Shape(required, {name: check for name, check in optional.items() if dynamic or name != "dynamic"})


_CALLS = {(dynamic, state): _call_shape(state, dynamic=dynamic) for dynamic in (True, False) for state in _STATES}
_APPROVAL: Mapping[str, Check] = {"requestReason": _text, "isAutomatic": _flag, "signature": _text}


def problem_of(part: Json) -> str:
    """Return the reason why `validateUIMessages` of version 7 refuses the part, or an empty string if it accepts the part.

    Version 6 accepts the same parts, except types that exist only in version 7.
    """
    if not isinstance(part, dict) or not isinstance(kind := part.get("type"), str):
        return "A part must be an object with a type."
    if kind.startswith("data-"):
        return _fields(part, _DATA.required, _DATA.optional)
    if is_tool(part):
        return _call_problem(part)
    shape = _PARTS.get(kind)
    if shape is None:
        return f"{kind!r} is not a known part type."
    return _fields(part, shape.required, shape.optional)


def _fields(part: JsonObject, required: Mapping[str, Check], optional: Mapping[str, Check]) -> str:
    kind = part.get("type")
    for name, check in required.items():
        if name not in part or not check(part[name]):
            return f"A {kind!r} part needs a valid {name!r}."
    for name, check in optional.items():
        if name in part and not check(part[name]):
            return f"The field {name!r} of a {kind!r} part is not valid."
    return ""


def _steering_problem(part: Json) -> str:
    if isinstance(part, dict) and part.get("type") in ("text", "file"):
        return problem_of({name: value for name, value in part.items() if name != "state"})
    return "Only text and files can be sent to a running answer."


def _call_problem(part: Part) -> str:
    state = part.get("state")
    if not isinstance(state, str) or state not in _STATES:
        return f"{state!r} is not a state of a tool call."
    shape = _CALLS[part["type"] == "dynamic-tool", state]
    if state != "output-error" and "errorText" in part:
        return f"A call in the state {state!r} can't have an error."
    if "output" in part and state != "output-available":
        return f"A call in the state {state!r} can't have an output."
    return _fields(part, shape.required, shape.optional) or _approval_problem(state, part)


_DECISIONS = {"output-available": (True,), "output-error": (True,), "output-denied": (False,), "approval-responded": (True, False)}


def _approval_problem(state: str, part: Part) -> str:
    if "approval" not in part:
        needed = state in ("approval-requested", "approval-responded", "output-denied")
        return f"A call in the state {state!r} needs its approval." if needed else ""
    approval = part["approval"]
    if state.startswith("input-"):
        return f"A call in the state {state!r} can't have an approval."
    if not isinstance(approval, dict) or not isinstance(approval.get("id"), str):
        return "An approval needs an id."
    if state == "approval-requested":
        if "approved" in approval or "reason" in approval:
            return "An unanswered approval must not contain a decision."
    elif not any(approval.get("approved") is decision for decision in _DECISIONS[state]):
        return f"The decision of the approval contradicts the state {state!r} of the call."
    elif "reason" in approval and not isinstance(approval["reason"], str):
        return "The reason of an approval must be text."
    return _fields({"type": "approval", **approval}, {}, _APPROVAL)


def valid_part(part: Json) -> Part:
    """Return the part if it is valid, or a repaired tool call, or else a `data-unknown` part that contains the part."""
    if not problem_of(part):
        return part  # type: ignore[return-value]
    if isinstance(part, dict) and is_tool(part) and not problem_of(mended := _mended(part)):
        return mended
    return {"type": UNKNOWN, "data": part}


def _mended(part: Part) -> Part:
    """Return the call without approval, output or error that contradict its state."""
    state, approval = part.get("state"), part.get("approval")
    approval = approval if isinstance(approval, dict) else {}
    decision = approval.get("approved")
    if state == "output-denied" or (state == "output-error" and decision is False):
        return _denied(part, approval)
    if state in ("approval-requested", "approval-responded") and not isinstance(approval.get("id"), str):
        state = "input-available"
    dropped = set[str]()
    if str(state).startswith("input-") or (str(state).startswith("output-") and decision is not True):
        dropped.add("approval")  # the user never answered, or the agent did not wait for the answer
    if state != "output-error":
        dropped.add("errorText")
    if state != "output-available":
        dropped.add("output")
    kept: Part = {name: value for name, value in part.items() if name not in dropped}
    kept["state"] = state
    if state == "output-error" and not isinstance(part.get("errorText"), str):
        kept["errorText"] = _words(part.get("errorText")) or _words(part.get("output")) or "failed"
    return kept


def _denied(part: Part, approval: JsonObject) -> Part:
    reason = approval.get("reason") or part.get("errorText")
    decision: JsonObject = {name: value for name, value in approval.items() if name != "reason"}
    decision |= {"id": str(approval.get("id") or part.get("toolCallId") or tool_name(part)), "approved": False}
    if isinstance(reason, str) and reason:
        decision["reason"] = reason
    kept: Part = {name: value for name, value in part.items() if name not in ("output", "errorText", "resultProviderMetadata")}
    return {**kept, "state": "output-denied", "approval": decision}


def _words(value: Json) -> str:
    return value if isinstance(value, str) else "" if value is None else dumps(value).decode()
