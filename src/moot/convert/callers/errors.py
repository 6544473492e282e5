"""Errors in the vendors' formats: an HTTP status and an error object (references: OpenAI and Claude API, errors)."""

from __future__ import annotations

from moot.types.canonical import JsonObject
from moot.types.exchange import Failure

STATUSES = {
    "rate_limit": 429,
    "overloaded": 529,
    "invalid_request": 400,
    "context_too_long": 400,
    "content": 400,
    "timeout": 504,
    "deadline": 504,
    "usage": 400,
    "config": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "auth": 403,  # this concerns moot's key for the provider; 401 would blame the caller's token
    "not_found": 404,
    "too_large": 413,
    "busy": 409,
    "limit": 400,
    "cancelled": 409,
}
"""HTTP status for each kind of failure. All other kinds are provider failures with the status 502."""

_COMPLETION = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error", 409: "conflict_error"}
_MESSAGE = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_CODES = {
    "unauthorized": "invalid_api_key",
    "auth": "invalid_provider_key",
    "rate_limit": "rate_limit_exceeded",
    "context_too_long": "context_length_exceeded",
    "not_found": "model_not_found",
}


def status_of(failure: Failure) -> int:
    """Return the HTTP status for a failure before the answer has started."""
    return STATUSES.get(failure.kind, 502)


def code_of(failure: Failure) -> str:
    """Return the failure's code for programs: the vendor's code if there is one, otherwise moot's."""
    return _CODES.get(failure.kind, failure.kind)


def completion_error(failure: Failure, status: int = 0) -> JsonObject:
    """Return the error for OpenAI clients: the response body or, in a stream, the last frame.

    The default of `status` is the status of the failure.
    """
    status = status or status_of(failure)
    kind = _COMPLETION.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": failure.advice(), "type": kind, "param": None, "code": code_of(failure)}}


def message_error(failure: Failure, status: int = 0) -> JsonObject:
    """Return the error for Anthropic clients: the response body or, in a stream, the data of the event `error`."""
    status = status or status_of(failure)
    kind = _MESSAGE.get(status, "invalid_request_error" if status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": failure.advice()}}
