"""Tool calls, plans, tokens and failures of Codex, converted from the items and fields of its protocol."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from moot.convert import vendor
from moot.convert.vendor import as_list, as_object, as_text, count, failure
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk, nested, tool_denied, tool_error, tool_output
from moot.types.exchange import Failure
from moot.types.usage import Usage

_HUMP = re.compile(r"_([a-z])")
_STATES = {"pending": "pending", "inProgress": "in_progress", "in_progress": "in_progress", "completed": "completed"}
_FAILURE_KINDS = {
    "contextWindowExceeded": "context_too_long",
    "usageLimitExceeded": "rate_limit",
    "rateLimitExceeded": "rate_limit",
    "sessionBudgetExceeded": "limit",
    "serverOverloaded": "overloaded",
    "internalServerError": "overloaded",
    "httpConnectionFailed": "transport",
    "responseStreamConnectionFailed": "transport",
    "responseStreamDisconnected": "transport",
    "responseTooManyFailedAttempts": "overloaded",
    "unauthorized": "auth",
    "badRequest": "invalid_request",
    "modelNotFound": "invalid_request",
    "cyberPolicy": "content",
}


def plan_of(params: JsonObject) -> JsonObject:
    """Return the plan of a plan update, as the data of a `data-plan` chunk."""
    return vendor.plan_of(params.get("plan"), "step", _STATES)


def camel(name: str) -> str:
    """Convert a name from snake_case, used in Codex's files and headless stream, to the app-server's camelCase."""
    return _HUMP.sub(lambda found: found[1].upper(), name)


def usage_of(told: JsonObject) -> Usage:
    """Return the token counts of one model call. Their names may be in camelCase or snake_case. Cache writes are part of the input."""
    return Usage(
        input=_either(told, "inputTokens", "input_tokens"),
        output=_either(told, "outputTokens", "output_tokens"),
        cache_read=_either(told, "cachedInputTokens", "cached_input_tokens"),
        cache_write=_either(told, "cacheWriteInputTokens", "cache_write_input_tokens"),
        reasoning=_either(told, "reasoningOutputTokens", "reasoning_output_tokens"),
    )


def _either(told: JsonObject, *names: str) -> int | None:
    for name in names:
        if (number := count(told.get(name))) is not None:
            return number
    return None


def failure_of(error: JsonObject) -> Failure:
    """Return the failure of a turn, given Codex's message and code."""
    message = as_text(error.get("message")) or "Codex failed and did not say why"
    details = as_text(error.get("additionalDetails"))
    reported = failure({"message": f"{message}: {details}" if details and details not in message else message})
    info = error.get("codexErrorInfo")
    code = as_text(info) or next(iter(as_object(info)), "")
    kind = _FAILURE_KINDS.get(code) or reported.kind
    return Failure(reported.message, kind, kind in ("rate_limit", "overloaded", "transport", "timeout"))


def note_of(method: str, params: JsonObject) -> str:
    """Return a note for the user about an event that produces no part, or an empty string for most events."""
    match method:
        case "model/rerouted":
            return f"Codex goes on with {as_text(params.get('toModel'))} in place of {as_text(params.get('fromModel'))}"
        case "guardianWarning":
            return as_text(params.get("message"))
        case "item/contextCompaction" | "thread/compacted":
            return "Codex has summarised the conversation so far to make room"
        case "item/enteredReviewMode":
            return "Codex reviews the changes"
        case "item/error":
            return as_text(params.get("message"))
        case _:
            return ""


NAME = "codex"
_SHELLS = frozenset({"bash", "sh", "zsh"})


class Call(NamedTuple):
    """A call without an output."""

    item: str
    """Codex's id for the call."""
    id: str
    name: str
    inner: str = ""
    """The thread of the sub-agent that made the call; empty for the agent itself."""
    waits: bool = False
    """True if the call's input is known only at its end."""
    output: str = ""
    """The beginning of the call's output."""
    said: int = 0
    """Number of characters of output so far."""
    shown: int = 0
    asked: bool = False
    """True if Codex asked for permission."""
    parent: str = ""
    """The id of the call that started the sub-agent."""


@dataclass(frozen=True, slots=True)
class _Kind:
    name: Callable[[JsonObject], str]
    input: Callable[[JsonObject], JsonObject]
    output: Callable[[JsonObject], Json]
    waits: bool = False


_FIRST_WORD = re.compile(r"""[ \t\r\n]*([^ \t\r\n'"\\]+)[ \t\r\n]""")
"""Matches the first word of a command if it has no quotes."""
_QUOTED = re.compile(r"""[ \t\r\n]*[^ \t\r\n'"\\]+[ \t\r\n]+-l?c[ \t\r\n]+'((?:[^']++|'"'"')*+)'[ \t\r\n]*""")
"""Matches a shell with a command that is quoted as `shlex.join` does it."""


def unwrap_shell(command: str) -> str:
    """Return the command without its shell: `/bin/bash -lc 'ls -1'` becomes `ls -1`."""
    # `shlex` is slow, and an import unwraps every command
    if (first := _FIRST_WORD.match(command)) is not None and first[1].rpartition("/")[2] not in _SHELLS:
        return command
    if (quoted := _QUOTED.fullmatch(command)) is not None:
        return quoted[1].replace("'\"'\"'", "'")
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    if len(words) == 3 and words[0].rpartition("/")[2] in _SHELLS and words[1] in ("-c", "-lc"):
        return words[2]
    return command


def is_call(item: JsonObject) -> bool:
    """Return True if the item is a tool call."""
    return item.get("type") in _KINDS


def input_of(item: JsonObject) -> tuple[str, JsonObject, bool]:
    """Return the call's name, its input, and whether the input is still incomplete."""
    kind = _KINDS[as_text(item.get("type"))]
    return kind.name(item), kind.input(item), kind.waits


def mark_own(chunk: Chunk, call: Call, facts: JsonObject | None = None) -> Chunk:
    """Return the chunk, marked as belonging to a tool that the agent runs itself."""
    details: JsonObject = {**({"agent": call.inner} if call.inner else {}), **(facts or {})}
    metadata: JsonObject = {"vendorId": call.item, NAME: details} if details else {"vendorId": call.item}
    return {**chunk, "providerExecuted": True, "dynamic": True, "toolMetadata": nested(metadata, call.parent)}


def output_of(item: JsonObject, call: Call) -> Chunk:
    """Return the chunk with the call's output."""
    kind = _KINDS[as_text(item.get("type"))]
    status = item.get("status")
    if status == "declined":
        words = as_text(as_object(item.get("error")).get("message")) or as_text(item.get("error")) or as_text(item.get("aggregatedOutput"))
        if call.asked:
            return tool_denied(call.id, approval=call.id, reason=words)
        return mark_own(tool_error(call.id, words or "Codex's own rules refused this call."), call)
    facts = {name: item[name] for name in ("exitCode", "durationMs", "cwd") if item.get(name) is not None}
    output = kind.output(item)
    if status in ("failed", "interrupted") or item.get("success") is False:
        text = as_text(as_object(item.get("error")).get("message")) or as_text(item.get("error")) or as_text(output)
        code = item.get("exitCode")
        if isinstance(code, int):
            text = f"exit code {code}\n{text}".rstrip()
        text = text or f"{as_text(item.get('status')) or 'failed'}, and Codex did not say why"
        return mark_own(tool_error(call.id, text), call, facts)
    return mark_own(tool_output(call.id, output), call, facts)


def _fields(*names: str) -> Callable[[JsonObject], JsonObject]:
    return lambda item: {name: item[name] for name in names if item.get(name) not in (None, "")}


def _arguments(item: JsonObject) -> JsonObject:
    value = item.get("arguments")
    return value if isinstance(value, dict) else {} if value is None else {"arguments": value}


def _changed(item: JsonObject) -> str:
    lines: list[str] = []
    for change in map(as_object, as_list(item.get("changes"))):
        kind = change.get("kind")
        verb = as_text(kind) or as_text(as_object(kind).get("type")) or "change"
        lines.append(f"{verb} {as_text(change.get('path'))}")
    return "\n".join(lines) or "nothing was changed"


def _mcp_output(item: JsonObject) -> Json:
    result = as_object(item.get("result"))
    return _content(as_list(result.get("content"))) or result.get("structuredContent") or ""


def _content(pieces: list[Json]) -> Json:
    """Return the output as text, or as text and files in the format of moot's own tool outputs."""
    found = [piece for block in pieces if (piece := _piece(as_object(block))) is not None]
    if all(piece["type"] == "text" for piece in found):
        return "\n".join(as_text(piece["text"]) for piece in found)
    return {"type": "content", "value": list[Json](found)}


def _piece(block: JsonObject) -> JsonObject | None:
    if (text := as_text(block.get("text"))) != "":
        return {"type": "text", "text": text}
    kind, encoded = as_text(block.get("mimeType")), as_text(block.get("data"))
    if kind and encoded:
        return {"type": "file", "mediaType": kind, "url": f"data:{kind};base64,{encoded}"}
    url = as_text(block.get("imageUrl"))
    if url.startswith("data:"):
        return {"type": "file", "mediaType": url[5:].partition(";")[0] or "image/png", "url": url}
    return {"type": "text", "text": url} if url else None


def _picture(item: JsonObject) -> Json:
    if encoded := as_text(item.get("result")):
        return {"type": "content", "value": [{"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{encoded}"}]}
    return as_text(item.get("savedPath")) or as_text(item.get("status"))


def _tool(item: JsonObject) -> str:
    return as_text(item.get("tool")) or "tool"


_KINDS: dict[str, _Kind] = {
    "commandExecution": _Kind(
        lambda item: "shell",
        lambda item: {"command": unwrap_shell(as_text(item.get("command")))},
        lambda item: as_text(item.get("aggregatedOutput")),
    ),
    "fileChange": _Kind(lambda item: "apply_patch", lambda item: {"changes": item.get("changes") or []}, _changed),
    "mcpToolCall": _Kind(
        lambda item: ".".join(filter(None, (as_text(item.get("server")), as_text(item.get("tool"))))) or "tool", _arguments, _mcp_output
    ),
    "dynamicToolCall": _Kind(_tool, _arguments, lambda item: _content(as_list(item.get("contentItems"))) or ""),
    "webSearch": _Kind(
        lambda item: "web_search", _fields("query", "action"), lambda item: item.get("results") or as_text(item.get("query")), waits=True
    ),
    "imageView": _Kind(lambda item: "view_image", _fields("path"), lambda item: as_text(item.get("path"))),
    "imageGeneration": _Kind(lambda item: "image_generation", _fields("revisedPrompt"), _picture, waits=True),
    "collabAgentToolCall": _Kind(
        _tool, _fields("prompt", "model", "receiverThreadIds"), lambda item: item.get("agentsStates") or as_text(item.get("status"))
    ),
    "sleep": _Kind(lambda item: "sleep", _fields("durationMs"), lambda item: ""),
}
