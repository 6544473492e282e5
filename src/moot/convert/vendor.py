"""Parsing functions shared by all translators: JSON values, token counts and errors."""

from __future__ import annotations

from collections.abc import Mapping

from moot.types.canonical import Json, JsonObject, dumps
from moot.types.exchange import Failure

_BY_STATUS = {401: "auth", 403: "auth", 408: "timeout", 413: "context_too_long", 429: "rate_limit", 504: "timeout", 529: "overloaded"}
_BY_WORD = (
    (
        "context_too_long",
        ("context_length", "context length", "maximum context", "prompt is too long", "too many tokens", "context window"),
    ),
    ("rate_limit", ("rate_limit", "rate limit", "too many requests")),
    (
        "overloaded",
        ("overloaded", "server_error", "api_error", "unavailable", "internal error", "bad gateway", "insufficient_system_resource"),
    ),
    ("timeout", ("timeout", "timed out")),
    ("auth", ("authentication", "permission", "invalid_api_key", "unauthorized")),
    ("content", ("content_policy", "content_filter", "moderation", "safety")),
    ("invalid_request", ("invalid_request", "not_found", "unsupported")),
)
_STATES: Mapping[str, str] = {"pending": "pending", "in_progress": "in_progress", "completed": "completed"}
_RETRYABLE = frozenset({"rate_limit", "overloaded", "timeout", "transport"})


def as_object(value: Json) -> JsonObject:
    """Return the value if it is an object, otherwise an empty object."""
    return value if isinstance(value, dict) else {}


def as_text(value: Json) -> str:
    """Return the value if it is a string, otherwise an empty string."""
    return value if isinstance(value, str) else ""


def as_list(value: Json) -> list[Json]:
    """Return the value if it is a list, otherwise an empty list."""
    return value if isinstance(value, list) else []


def count(value: Json) -> int | None:
    """Return the value if it is a valid token count, otherwise None."""
    return value if type(value) is int and value >= 0 else None


def plan_of(steps: Json, field: str, states: Mapping[str, str] = _STATES) -> JsonObject:
    """Return an agent's plan as entries with text and status.
    `field` is the field that contains the text; `states` maps the agent's statuses to moot's.
    """
    entries: list[Json] = []
    for step in map(as_object, as_list(steps)):
        entries.append({"content": as_text(step.get(field)), "status": states.get(as_text(step.get("status")), "pending")})
    return {"entries": entries}


def nano_dollars(value: Json) -> int | None:
    """Convert dollars to nano-dollars, or return None if the value is not an amount."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        return None
    return round(value * 1e9)


def failure(error: Json) -> Failure:
    """Parse a vendor's error, which may be an object, a string or a code."""
    fields = as_object(error)
    inner = as_object(fields.get("error")) or fields
    message = as_text(inner.get("message")) or as_text(fields.get("detail")) or as_text(error) or as_text(fields.get("error"))
    message = message or dumps(error).decode()[:500]
    kind = _kind(inner, message)
    after = inner.get("retry_after")
    return Failure(
        message, kind, kind in _RETRYABLE, float(after) if isinstance(after, int | float) and not isinstance(after, bool) else None
    )


def _kind(error: JsonObject, message: str) -> str:
    words = " ".join(str(error.get(name) or "") for name in ("type", "code", "status")).lower()
    kind = _in(words, _BY_WORD) or _by_status(error) or _in(message, _BY_WORD) or "failed"
    # some vendors only mention in the message of an invalid request that it was too long
    return _in(message, _BY_WORD[:1]) or kind if kind in ("invalid_request", "failed") else kind


def _by_status(error: JsonObject) -> str:
    for name in ("code", "status", "http_code"):
        status = error.get(name)
        number = int(status) if isinstance(status, str) and status.isdecimal() and len(status) == 3 else status
        if isinstance(number, int) and 400 <= number < 600:
            return _BY_STATUS.get(number) or ("overloaded" if number >= 500 else "invalid_request")
    return ""


def _in(text: str, table: tuple[tuple[str, tuple[str, ...]], ...]) -> str:
    lowered = text.lower()
    return next((kind for kind, signs in table if any(sign in lowered for sign in signs)), "")
