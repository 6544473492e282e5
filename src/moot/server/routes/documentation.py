"""The description of all operations."""

from __future__ import annotations

from fastapi import Request, Response

from moot.server.auth import Reader
from moot.server.openapi import specification
from moot.server.routing import Router
from moot.types.canonical import dumps

router = Router(tags=["documentation"])


@router.get("/openapi.json", response_class=Response, responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}}})
async def openapi(request: Request, _: Reader) -> Response:
    """Describes all operations, as OpenAPI 3.1; `/docs` shows it to people."""
    state = request.app.state
    if not hasattr(state, "specification"):
        state.specification = dumps(specification(request.app))
    return Response(state.specification, media_type="application/json")
