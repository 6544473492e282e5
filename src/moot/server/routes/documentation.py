"""The OpenAPI description of all operations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, RouteContext, iter_route_contexts

from moot import __version__
from moot.server.auth import FOREIGN, Reader, Router, needed
from moot.server.examples import add_examples
from moot.server.problems import MEDIA_TYPE
from moot.types.canonical import JsonObject, dumps

_ABOUT = """One home for every AI agent's conversations.

Send `Authorization: Bearer TOKEN` with a token from `moot tokens create NAME`. Scopes, each of which includes those before it: `read`,
`chat`, `tools`, `admin` (all data of the user), `machine` (settings of the server; only for the user who runs it). Lists are paginated:
pass `next_cursor` as `cursor` to get the next page. Errors are RFC 9457 problems with a `code`, a `fix` and the `request_id` used in the
server's log. A POST with an `Idempotency-Key` is executed once; repeating it within a day returns the stored response.
"""

_SCHEMES: JsonObject = {
    "token": {"type": "http", "scheme": "bearer", "description": "A token created with `moot tokens create NAME`."},
    "browser": {"type": "apiKey", "in": "cookie", "name": "moot_session", "description": "Session cookie set by `POST /api/login`."},
    "key": {
        "type": "apiKey",
        "in": "header",
        "name": "x-api-key",
        "description": "The same token in another header; only accepted below /v1.",
    },
}


def _text(description: str = "") -> JsonObject:
    return {"type": "string", "description": description} if description else {"type": "string"}


def _object(required: str, properties: JsonObject, description: str = "") -> JsonObject:
    described: JsonObject = {"description": description} if description else {}
    return {"type": "object", **described, "required": [*required.split()], "properties": properties}


_PROBLEM = _object(
    "type title status detail code fix request_id",
    {
        "type": _text("`urn:moot:problem:` followed by the code."),
        "title": _text(),
        "status": {"type": "integer"},
        "detail": _text("Human-readable explanation of the error."),
        "code": _text("Stable error code for programs."),
        "fix": _text("Suggested next step; may be empty."),
        "request_id": _text(),
        "errors": {"type": "array", "items": _object("at message", {"at": _text(), "message": _text()})},
    },
    "An error in the format of RFC 9457.",
)

_REPEATED: JsonObject = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Unique key of 1 to 255 characters. A repeated request with the same key returns the stored response.",
    "schema": {"type": "string", "maxLength": 255},
}

_REFUSAL = _object(
    "error",
    {"error": _object("message type", {"message": _text(), "type": _text()})},
    "An error in the format of the vendor's API.",
)

_SHARED = ("400", "401", "403", "422", "default")


def routes_of(app: FastAPI) -> Iterator[RouteContext]:
    """Yield all API operations of the application with their paths and methods."""
    yield from (context for context in iter_route_contexts(app.routes) if isinstance(context.original_route, APIRoute))


def specification(app: FastAPI) -> JsonObject:
    """Return the complete OpenAPI description in a stable order."""
    document = cast(
        "JsonObject",
        get_openapi(title="moot", version=__version__, openapi_version="3.1.0", description=_ABOUT, routes=app.routes),
    )
    scopes = {
        (context.path_format or "", method.lower()): needed(cast("APIRoute", context.original_route).dependant)
        for context in routes_of(app)
        for method in context.methods or ()
    }
    for path, operations in _objects(document, "paths").items():
        for method, operation in cast("dict[str, JsonObject]", operations).items():
            _complete(operation, path, method, scopes[path, method])
    components = _objects(document, "components")
    schemas = {name: schema for name, schema in _objects(components, "schemas").items() if name not in _REPLACED}
    components["schemas"] = dict(sorted({**schemas, "Problem": _PROBLEM, "Refusal": _REFUSAL}.items()))
    components["responses"] = {
        "Problem": {"description": "An error.", "content": {MEDIA_TYPE: {"schema": _reference("schemas", "Problem")}}},
        "Refusal": {
            "description": "An error in the format of the vendor's API, or an RFC 9457 problem if the request was rejected early.",
            "content": {
                "application/json": {"schema": _reference("schemas", "Refusal")},
                MEDIA_TYPE: {"schema": _reference("schemas", "Problem")},
            },
        },
    }
    components["securitySchemes"] = _SCHEMES
    add_examples(document)
    return document


_REPLACED = ("HTTPValidationError", "ValidationError")
"""FastAPI's own error schemas, which are replaced by problems."""


def _complete(operation: JsonObject, path: str, method: str, scope: str | None) -> None:
    """Add errors, security and the idempotency header. The docstring's first sentence becomes the summary, the rest the description."""
    first, *paragraphs = str(operation.get("description", "")).split("\n\n")
    summary, _, rest = " ".join(first.split()).partition(". ")
    operation["summary"] = summary.rstrip(".")
    operation["description"] = "\n\n".join([*([rest] if rest else []), *(paragraph.strip() for paragraph in paragraphs)])
    if not operation["description"]:
        del operation["description"]
    skipped = () if scope is not None else ("401", "403")
    kind = "Refusal" if path.startswith(FOREIGN) else "Problem"
    shared = {status: _reference("responses", kind) for status in _SHARED if status not in skipped}
    operation["responses"] = dict(sorted({**_objects(operation, "responses"), **shared}.items()))
    if scope is not None:
        schemes = ["token", "browser", *(["key"] if path.startswith(FOREIGN) else [])]
        operation["security"] = [{scheme: [scope]} for scheme in schemes]
    else:
        operation["security"] = []
    if method == "post" and scope is not None:
        operation["parameters"] = [*cast("list[Any]", operation.get("parameters", [])), _REPEATED]


def _objects(holder: JsonObject, name: str) -> JsonObject:
    """Return the named object, creating it if it is missing."""
    return cast("JsonObject", holder.setdefault(name, {}))


def _reference(kind: str, name: str) -> JsonObject:
    return {"$ref": f"#/components/{kind}/{name}"}


router = Router(tags=["documentation"])


@router.get("/openapi.json", response_class=Response, responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}}})
async def openapi(request: Request, _: Reader) -> Response:
    """Get the OpenAPI 3.1 description of all operations; `/docs` renders it."""
    state = request.app.state
    if not hasattr(state, "specification"):
        state.specification = dumps(specification(request.app))
    return Response(state.specification, media_type="application/json")
