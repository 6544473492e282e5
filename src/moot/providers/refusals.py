"""Conversion of an HTTP error response (status, headers, body) to a ProviderError."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import orjson

from moot.convert.dialects.frames import KEPT
from moot.errors import ProviderError
from moot.types.canonical import Json, JsonObject

_LONGEST = 500
"""Maximum number of characters quoted from a vendor's message."""

_BY_STATUS = {
    401: "auth",
    403: "auth",
    408: "timeout",
    409: "overloaded",
    425: "overloaded",
    429: "rate_limit",
    500: "overloaded",
    502: "overloaded",
    503: "overloaded",
    504: "timeout",
    520: "overloaded",
    522: "overloaded",
    524: "timeout",
    529: "overloaded",
}
_RETRYABLE = frozenset({"overloaded", "rate_limit", "timeout", "transport"})

_CONTEXT = re.compile(
    r"context[_ ]length|context[_ ]window|maximum context|context size|prompt is too long|input is too long|too many (input )?tokens"
    r"|exceed.{0,40}context|reduce the length of the (messages|prompt)|model_max_prompt_tokens|token limit exceeded",
    re.IGNORECASE,
)
_CONTENT = re.compile(r"content[_ ](filter|policy|management)|moderation|safety system|sensitive content|responsible ?ai", re.IGNORECASE)
_NO_MONEY = re.compile(
    r"insufficient[_ ](quota|balance|credits?|funds)|billing[_ ](hard|not|limit|error|details)|credit balance is too low"
    r"|exceeded your current quota|余额不足",
    re.IGNORECASE,
)

_FIXES = {
    "auth": "Check providers.{name}.api_key with `moot providers test {name}`.",
    "context_too_long": "Start a new conversation, or use a model with a larger context.",
    "rate_limit": "Wait, or name a fallback model in models.fallback.",
    "overloaded": "Try again later, or name a fallback model in models.fallback.",
    "protocol": "Set providers.{name}.base_url to the new address. Redirects are not followed, to protect the key.",
}
_FIX_404 = "Check the model's name with `moot models list`, and providers.{name}.base_url."


def refusal_error(name: str, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """Return the error for an unsuccessful response. `headers` must be case-insensitive; `body` may be truncated."""
    vendor_message, code = _vendor_error(body)
    kind = _kind(status, f"{code} {vendor_message}")
    no_money = status == 402 or (status in (400, 403, 429) and _NO_MONEY.search(f"{code} {vendor_message}") is not None)
    kind = "rate_limit" if no_money else kind
    retryable = kind in _RETRYABLE and not no_money
    should_retry = headers.get("x-should-retry", "").strip().lower()
    if should_retry in ("true", "false"):
        retryable = should_retry == "true"
    if no_money:
        fix = f"Add credit to the account at {name}, or choose another model."
    else:
        fix = (_FIX_404 if status == 404 else _FIXES.get(kind, "")).format(name=name)
    detail = vendor_message or (
        f"unexpected response {start!r}" if (start := _short(body[:200].decode("utf-8", "replace"))[:80]) else "no error message"
    )
    return ProviderError(
        f"The provider {name} refused the request with status {status}: {detail}",
        fix=fix,
        kind=kind,
        status=status,
        retryable=retryable,
        retry_after=retry_after(headers),
        raw=body[:KEPT],
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the number of seconds that the endpoint asks to wait, at least 0, or None if it does not say.

    A date is compared with the `Date` header of the response, so that wrong clocks don't matter.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "").strip()
    seconds = _number(text)
    if seconds is not None or not text:
        return seconds
    until, since = _date(text), _date(headers.get("date", "")) or datetime.now(UTC)
    return max(0.0, (until - since).total_seconds()) if until else None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _kind(status: int, text: str) -> str:
    if 300 <= status < 400:
        return "protocol"
    if 400 <= status < 500 and status not in (401, 404):
        if _CONTEXT.search(text):
            return "context_too_long"
        if _CONTENT.search(text):
            return "content"
    return _BY_STATUS.get(status, "invalid_request" if status < 500 else "overloaded")


def _vendor_error(body: bytes) -> tuple[str, str]:
    """Return the vendor's message and error code from any of the usual formats, or empty strings."""
    try:
        value: Json = orjson.loads(body.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError:
        return "", ""
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return "", ""
    error = value.get("error", value)
    if isinstance(error, str):
        return _short(error), ""
    if not isinstance(error, dict):
        return "", ""
    code = " ".join(str(error[field]) for field in ("code", "type", "status") if isinstance(error.get(field), str | int))
    return _short(_message(error) or _message(value)), code


def _message(error: JsonObject) -> str:
    for field in ("message", "detail", "msg", "error_description"):
        found = error.get(field)
        if isinstance(found, str) and found:
            return found
        if found:
            return orjson.dumps(found).decode()
    return ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
