"""`GET /v1/models`: agents and models, in a format that works for OpenAI and Anthropic clients."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from moot.agents.known import available_agents
from moot.engine.submissions import default_directory
from moot.errors import NotFound
from moot.server.auth import Reader
from moot.server.credentials import Caller
from moot.server.dialects.bodies import MODEL, MODELS
from moot.server.dialects.calls import AGENT
from moot.server.dialects.router import router_of
from moot.server.state import CurrentServer, Server
from moot.types.canonical import JsonObject, dumps

router = router_of("completion")

MOST = 1000


@router.get("/models", response_class=Response, responses=MODELS)
async def models(
    server: CurrentServer,
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=MOST)] = MOST,
    after_id: Annotated[str, Query(max_length=500)] = "",
) -> Response:
    """List the values accepted for `model`. Agents come first, then the models of all available providers."""
    found = [_model(f"{AGENT}{name}", "moot", f"the agent {name}") for name in _agents(server, caller)]
    listing = await server.engine.providers.models()
    found += [_model(str(model.id), model.id.provider, str(model.id)) for model in listing.models]
    start = next((at + 1 for at, model in enumerate(found) if model["id"] == after_id), 0)
    page = found[start : start + limit]
    body: JsonObject = {"object": "list", "data": [*page], "has_more": start + limit < len(found)}
    body |= {"first_id": page[0]["id"] if page else None, "last_id": page[-1]["id"] if page else None}
    return Response(dumps(body), media_type="application/json")


@router.get("/models/{model_id:path}", response_class=Response, responses=MODEL)
async def model(server: CurrentServer, caller: Reader, model_id: str) -> Response:
    """Get a model or agent."""
    engine = server.engine
    if model_id.startswith(AGENT):
        name = model_id.removeprefix(AGENT)
        if name not in _agents(server, caller):
            raise NotFound(f"Agent {name!r} not found.", fix="Use a model listed by GET /v1/models.")
        shown = _model(model_id, "moot", f"the agent {name}")
    else:
        choice = await engine.providers.choice(model_id)
        shown = _model(str(choice.model.id), choice.provider.name, str(choice.model.id))
    return Response(dumps(shown), media_type="application/json")


def _agents(server: Server, caller: Caller) -> list[str]:
    return sorted(available_agents(server.engine.runtime.settings, default_directory(caller.owner_id)))


def _model(id: str, owner: str, name: str) -> JsonObject:
    """Describe a model. Its creation time is unknown, so the epoch is returned, which clients of both vendors accept."""
    return {
        "id": id,
        "object": "model",
        "created": 0,
        "owned_by": owner,
        "type": "model",
        "display_name": name,
        "created_at": "1970-01-01T00:00:00Z",
    }
