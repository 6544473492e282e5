"""Errors as RFC 9457 problems. One table defines all status codes, and tracebacks are never sent."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Literal, cast

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from moot import errors
from moot.convert.callers.errors import completion_error, message_error
from moot.convert.callers.errors import status_of as status_of_failure
from moot.types.canonical import JsonObject, dumps
from moot.types.exchange import Failure

MEDIA_TYPE = "application/problem+json"

STATUSES: dict[type[errors.MootError], int] = {
    errors.MootError: 500,
    errors.UsageError: 400,
    errors.NotFound: 404,
    errors.ConfigError: 422,
    errors.NeedsApproval: 409,
    errors.OutputContract: 422,
    errors.ProviderError: 502,
    errors.LimitReached: 429,
    errors.Busy: 409,
    errors.Cancelled: 409,
    errors.Refused: 403,
    errors.StoreError: 503,
    errors.StoreFull: 507,
    errors.FenceLost: 409,
}
"""Status of each error class; a class without an entry uses its parent's."""

CODES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    409: "conflict",
    412: "precondition_failed",
    413: "too_large",
    415: "unsupported_media_type",
    421: "misdirected",
    422: "invalid",
    428: "precondition_required",
    429: "too_many",
    431: "headers_too_large",
    500: "internal",
    503: "unavailable",
}

FIXES = {
    404: "See /docs for the available operations.",
    405: "Use a method listed in the Allow header.",
    415: "Send application/json.",
    500: "Search the server's log for the request_id.",
}

log = logging.getLogger("moot.server")


class Problem(HTTPException):
    """An HTTP error. moot's own errors are raised as MootError."""

    def __init__(self, status: int, detail: str, *, fix: str = "", code: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, detail, headers)
        self.fix = fix
        self.code = code or CODES.get(status, "error")


def status_of(error: errors.MootError) -> int:
    """Return the HTTP status of an error."""
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


ErrorFormat = Literal["completion", "message"]
"""Error format of a model API: `completion` for OpenAI, `message` for Anthropic."""

FOREIGN = "/v1/"
"""Path prefix of the routes that are compatible with other vendors' APIs."""


def format_of(scope: Scope) -> ErrorFormat | None:
    """Return the error format that clients of the path expect, or None if the path is not below `/v1`."""
    path = f"{scope['path']}/"
    return None if not path.startswith(FOREIGN) else "message" if path.startswith(f"{FOREIGN}messages/") else "completion"


def refuse(error_format: ErrorFormat, failure: Failure, *, status: int = 0, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error response in a vendor's format, with a header that tells clients whether to retry."""
    status = status or status_of_failure(failure)
    all_headers = {**(headers or {}), "x-should-retry": "true" if failure.retryable or status == 409 else "false"}
    if failure.retry_after is not None:
        all_headers["retry-after"] = str(max(1, round(failure.retry_after)))
    if error_format == "completion" and status == 529:
        status = 503
    body = completion_error(failure, status) if error_format == "completion" else message_error(failure, status)
    return Response(dumps(body), status, headers=all_headers, media_type="application/json")


def request_id(scope: Scope) -> str:
    """Return the id used in the response and the log lines of this request."""
    return str(scope.get("moot.request", ""))


def problem(
    scope: Scope,
    status: int,
    detail: str,
    *,
    fix: str = "",
    code: str = "",
    headers: Mapping[str, str] | None = None,
    more: JsonObject | None = None,
) -> Response:
    """Return an error response: an RFC 9457 problem, or below `/v1` an error in the vendor's format."""
    code = code or CODES.get(status, "error")
    if (error_format := format_of(scope)) is not None:
        return refuse(error_format, Failure(str(_clean(detail)), code, fix=fix), status=status, headers=headers)
    body = {
        "type": f"urn:moot:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "fix": fix or FIXES.get(status, ""),
        "request_id": request_id(scope),
        **(more or {}),
    }
    # error texts may contain lone surrogates, which are not valid in JSON
    text = orjson.dumps({key: _clean(value) for key, value in body.items()})
    return Response(text, status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def of_moot(scope: Scope, error: errors.MootError) -> Response:
    """Return the response for a MootError."""
    status = status_of(error)
    if status >= 500:
        log.error("%s: %s", type(error).__name__, error, extra={"request": request_id(scope)})
    headers: dict[str, str] = {}
    if isinstance(error, errors.ProviderError) and error.retry_after is not None:
        headers["retry-after"] = str(max(1, round(error.retry_after)))
    found = error.problems[:20] if isinstance(error, errors.ConfigError) else ()
    more: JsonObject | None = {"errors": [{"at": at, "message": message} for at, message in found]} if found else None
    return problem(scope, status, error.message, fix=error.fix, code=error.code, headers=headers, more=more)


def of_http(scope: Scope, error: HTTPException) -> Response:
    """Return the response for an HTTP error."""
    if isinstance(error, Problem):
        return problem(scope, error.status_code, error.detail, fix=error.fix, code=error.code, headers=error.headers)
    path = str(scope.get("raw_path", b"").decode("latin-1")) or scope["path"]
    details = {404: f"{path!r} not found.", 405: f"{path!r} does not support {scope['method']}."}
    code = "unknown_url" if error.status_code == 404 and format_of(scope) else ""  # below /v1, `not_found` is the code of an unknown model
    return problem(scope, error.status_code, details.get(error.status_code, error.detail), code=code, headers=error.headers)


def sentence(message: str) -> str:
    """Return a pydantic message as a sentence."""
    return f"{message.removeprefix('Value error, ').rstrip('.')}."


def of_validation(scope: Scope, error: RequestValidationError) -> Response:
    """Return the response for an invalid request, with the location of each error."""
    faults = cast("Sequence[dict[str, Any]]", error.errors())
    if any(fault["type"] == "json_invalid" for fault in faults):
        reason = str(faults[0].get("ctx", {}).get("error", ""))
        return problem(
            scope, 400, f"The body is not valid JSON: {reason.rstrip('.')}.", code="bad_json", fix="Send one JSON document in UTF-8."
        )
    found = [{"at": ".".join(map(str, fault["loc"])), "message": sentence(fault["msg"])} for fault in faults[:20]]
    detail = " ".join(f"{each['at']}: {each['message']}" for each in found[:3])
    return problem(scope, 422, detail, fix="See /docs for the expected format.", more={"errors": cast("Any", found)})


def install(app: FastAPI) -> None:
    """Register handlers that return every error as a problem."""

    def handle(kind: type[Exception], response: Callable[[Scope, Any], Response]) -> None:
        async def handler(request: Request, error: Exception) -> Response:
            return response(request.scope, error)

        app.add_exception_handler(kind, handler)

    handle(errors.MootError, of_moot)
    handle(HTTPException, of_http)
    handle(RequestValidationError, of_validation)


def _clean(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_clean(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in cast("dict[object, object]", value).items()}
    return value
