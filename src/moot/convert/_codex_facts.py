"""Plans, tokens, failures and notes of Codex."""

from __future__ import annotations

from moot.convert._vendor import as_list, as_object, as_text, count, failure
from moot.types.canonical import Json, JsonObject
from moot.types.exchange import Failure
from moot.types.usage import Usage

_STATES = {"pending": "pending", "inProgress": "in_progress", "in_progress": "in_progress", "completed": "completed"}
_KINDS = {
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
    """Return the current plan."""
    entries: list[Json] = []
    for step in map(as_object, as_list(params.get("plan"))):
        state = _STATES.get(as_text(step.get("status")), "pending")
        entries.append({"content": as_text(step.get("step")), "status": state})
    return {"entries": entries}


def usage_of(told: JsonObject) -> Usage:
    """Return the tokens of one model call, in the app-server's or the headless spelling. Cache writes are not additional input."""
    return Usage(
        input=_either(told, "inputTokens", "input_tokens"),
        output=_either(told, "outputTokens", "output_tokens"),
        cache_read=_either(told, "cachedInputTokens", "cached_input_tokens"),
        cache_write=_either(told, "cacheWriteInputTokens", "cache_write_input_tokens"),
        reasoning=_either(told, "reasoningOutputTokens", "reasoning_output_tokens"),
    )


def _either(told: JsonObject, *names: str) -> int | None:
    return next((number for name in names if (number := count(told.get(name))) is not None), None)


def failure_of(error: JsonObject) -> Failure:
    """Return why a turn failed, from Codex's message and code."""
    message = as_text(error.get("message")) or "Codex failed and did not say why"
    details = as_text(error.get("additionalDetails"))
    reported = failure({"message": f"{message}: {details}" if details and details not in message else message})
    info = error.get("codexErrorInfo")
    code = as_text(info) or next(iter(as_object(info)), "")
    kind = _KINDS.get(code) or reported.kind
    return Failure(reported.message, kind, kind in ("rate_limit", "overloaded", "transport", "timeout"))


def noted(method: str, params: JsonObject) -> str:
    """Return a note for the user about an event that is not a part; empty for nearly all."""
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
