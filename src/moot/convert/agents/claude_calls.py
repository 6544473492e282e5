"""Tool calls, turn results, usage, cost and notes of Claude Code, which runs its tools itself."""

from __future__ import annotations

from typing import NamedTuple

from moot.convert import vendor
from moot.convert.dialects.anthropic_stream import usage_of
from moot.convert.vendor import as_list, as_object, as_text, count, failure, nano_dollars
from moot.convert.writer import read_arguments
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk, nested, tool_denied, tool_error, tool_input_error, tool_output
from moot.types.exchange import Failure
from moot.types.usage import Usage

_SINCE = "model_usage_since_last_result"
_SHORT = 500
"""Maximum length of the strings that are kept from a structured result, in characters. Longer strings repeat the output or a whole file."""
_FACTS = 4096
"""Maximum size of a structured result that is stored next to the output, in bytes."""
_LIMITS = {"error_max_turns": "raise it with max_steps", "error_max_budget_usd": ""}
"""The agent's own limits, and how to raise each of them."""


def usage_of_turn(result: JsonObject) -> Usage:
    """Return the turn's token counts, including those of sub-agents and auxiliary calls.
    Older versions report only the main agent's calls.
    """
    models = as_object(result.get(_SINCE))
    if not models:
        return usage_of(as_object(result.get("usage")))
    total = Usage()
    for model in map(as_object, models.values()):
        fresh, read, written = (count(model.get(name)) for name in ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"))
        every = None if fresh is None and read is None and written is None else (fresh or 0) + (read or 0) + (written or 0)
        total += Usage(every, count(model.get("outputTokens")), read, written, count(model.get("thinkingTokens")))
    return total


def cost_of(result: JsonObject, *, resumed: bool) -> int | None:
    """Return the turn's cost in nano-dollars, or None if it is unknown. In a resumed session, `total_cost_usd` includes earlier turns."""
    models = as_object(result.get(_SINCE))
    if _SINCE in result:
        amounts = [nano_dollars(as_object(model).get("costUSD")) for model in models.values()]
        return None if None in amounts else sum(amount for amount in amounts if amount is not None)
    return None if resumed else nano_dollars(result.get("total_cost_usd"))


def context_usage(result: JsonObject, model: Json, usage: JsonObject | None) -> float | None:
    """Return the fraction of the model's context that the last call used, from 0 to 1, or None if it is unknown."""
    window = count(as_object(as_object(result.get("modelUsage")).get(as_text(model))).get("contextWindow"))
    last = usage_of(usage or {})
    return round(min((last.input + (last.output or 0)) / window, 1.0), 4) if window and last.input else None


def failure_of(result: JsonObject) -> Failure | None:
    """Return the failure of the turn, or None if it did not fail."""
    subtype = as_text(result.get("subtype"))
    if result.get("is_error") is not True and not subtype.startswith("error"):
        return None
    if as_text(result.get("terminal_reason")).startswith("aborted"):
        return Failure("Claude Code was interrupted", "interrupted")
    text = "; ".join(as_text(error) for error in as_list(result.get("errors"))) or as_text(result.get("result"))
    if subtype in _LIMITS:
        return Failure(text or f"Claude Code stopped: {subtype}", "limit", fix=_LIMITS[subtype])
    status = result.get("api_error_status")
    return failure({"message": text or subtype or "Claude Code failed and did not say why", "status": status if count(status) else None})


def note_of(event: JsonObject) -> str:
    """Return a note for the user about a `system` event, or an empty string for most events."""
    match event.get("subtype"):
        case "api_retry":
            tries = f"{event.get('attempt')} of {event.get('max_retries')}"
            why = " ".join(str(event[name]) for name in ("error_status", "error") if event.get(name))
            return f"The model's endpoint refused ({why or 'no reason given'}); Claude Code tries again, {tries}."
        case "compact_boundary":
            return "Claude Code summarised the earlier part of its session here."
        case "model_refusal_fallback" | "model_fallback" | "model_consent_fallback":
            return "Claude Code went on with another model."
        case _:
            return ""


def plan_of(arguments: Json) -> JsonObject | None:
    """Return the to-do list that a call to `TodoWrite` sets, or None for other arguments."""
    todos = as_object(arguments).get("todos")
    return vendor.plan_of(todos, "content") if isinstance(todos, list) else None


def structured_facts(result: Json) -> JsonObject | None:
    """Return a tool's structured result without long strings, or None if nothing is left or it is still too large."""
    if not isinstance(result, dict):
        return None
    try:
        kept = as_object(_pruned(result, 6))
        return kept if kept and len(canonical.dumps(kept)) <= _FACTS else None
    except ValueError:
        return None


def _pruned(value: Json, depth: int) -> Json:
    if isinstance(value, dict):
        return {name: _pruned(item, depth - 1) for name, item in value.items() if depth and not _long(item)}
    if isinstance(value, list):
        return [_pruned(item, depth - 1) for item in value if depth and not _long(item)]
    return value


def _long(value: Json) -> bool:
    return value is None or (isinstance(value, str) and len(value) > _SHORT)


NAME = "claude-code"
_WRAP = ("<tool_use_error>", "</tool_use_error>")


class Call(NamedTuple):
    """A call without an output."""

    id: str
    vendor_id: str
    parent: str = ""
    """The id of the call whose sub-agent makes this call; empty for the agent itself."""
    agent: str = ""
    """The kind of the sub-agent; empty for the agent itself or if unknown."""


def mark_own(chunk: Chunk, call: Call) -> Chunk:
    """Return the chunk, marked as belonging to a tool that the agent runs itself."""
    return {**chunk, "providerExecuted": True, "dynamic": True, "toolMetadata": _metadata(call)}


def input_chunks(call: Call, block: JsonObject) -> tuple[Chunk, ...]:
    """Return the chunks for a call whose input was not streamed."""
    name = as_text(block.get("name")) or "unknown"
    start: Chunk = {"type": "tool-input-start", "toolCallId": call.id, "toolName": name}
    try:
        arguments = read_arguments(canonical.dumps(block.get("input") or {}).decode())
    except ValueError as error:
        failed = tool_input_error(call.id, name, None, f"the arguments can't be read: {error}")
        return mark_own(start, call), mark_own(failed, call)
    available: Chunk = {"type": "tool-input-available", "toolCallId": call.id, "toolName": name, "input": arguments}
    return mark_own(start, call), mark_own(available, call)


def output_of(call: Call, block: JsonObject, line: JsonObject) -> Chunk:
    """Return the chunk with the call's output, from its `tool_result` block and the other fields of the line."""
    if _denied(call, line):
        return tool_denied(call.id, approval=call.id, reason=_error_text(block))
    content = block.get("content")
    facts = structured_facts(line.get("tool_use_result"))
    if block.get("is_error") is True:
        chunk = tool_error(call.id, _error_text(block) or "the tool failed and did not say why")
    else:
        chunk = tool_output(call.id, _output(content))
    return {**mark_own(chunk, call), "toolMetadata": _metadata(call, facts)}


def _metadata(call: Call, facts: JsonObject | None = None) -> JsonObject:
    details: JsonObject = {"agent": call.agent} if call.parent and call.agent else {}
    if facts:
        details["result"] = facts
    return nested({"vendorId": call.vendor_id, NAME: details} if details else {"vendorId": call.vendor_id}, call.parent)


def _denied(call: Call, line: JsonObject) -> bool:
    """Return True if the user denied the call. A refusal by the agent's own rules is an error, not a denial."""
    for meta in map(as_object, as_list(line.get("tool_result_meta"))):
        if meta.get("id") == call.vendor_id:
            decision = as_object(meta.get("permission_decision"))
            return decision.get("source") == "user_reject" or (not decision and meta.get("non_execution_kind") == "user-rejected")
    return False


def _error_text(block: JsonObject) -> str:
    return _text(block.get("content")).strip().removeprefix(_WRAP[0]).removesuffix(_WRAP[1]).strip()


def _output(content: Json) -> Json:
    """Return the output as text, or as text and images in the format of moot's own tool outputs."""
    if isinstance(content, str):
        return content
    files = [file for block in as_list(content) if (file := _file(as_object(block))) is not None]
    text = _text(content)
    if not files:
        return text
    return {"type": "content", "value": [*([{"type": "text", "text": text}] if text else []), *files]}


def _file(block: JsonObject) -> JsonObject | None:
    source = as_object(block.get("source"))
    kind, encoded = as_text(source.get("media_type")), as_text(source.get("data"))
    if block.get("type") not in ("image", "document") or source.get("type") != "base64" or not kind or not encoded:
        return None
    return {"type": "file", "mediaType": kind, "url": f"data:{kind};base64,{encoded}"}


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    blocks = map(as_object, as_list(content))
    texts = (as_text(block.get("tool_name" if block.get("type") == "tool_reference" else "text")) for block in blocks)
    return "\n".join(filter(None, texts))
