"""The OpenAI Embeddings API: `POST /v1/embeddings`."""

from __future__ import annotations

import base64
import math
import sys
from array import array
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from moot.convert.history import CHARACTERS
from moot.errors import UsageError
from moot.providers.media import embed
from moot.providers.weights import EMBEDDING
from moot.server.auth import Chatter
from moot.server.dialects.bodies import EMBEDDINGS_ANSWER, EMBEDDINGS_BODY
from moot.server.dialects.router import body_of, router_of
from moot.server.state import CurrentServer
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.search import Embedders

router = router_of("completion")

MOST = 2048
"""Maximum number of texts in a request for the embedded model."""


class _Asked(NamedTuple):
    """A request for embeddings."""

    model: str
    fields: JsonObject
    """The whole body."""


@router.post("/embeddings", response_class=Response, responses=EMBEDDINGS_ANSWER, openapi_extra=EMBEDDINGS_BODY)
async def embeddings(server: CurrentServer, caller: Chatter, request: Request) -> Response:
    """Create embeddings in the OpenAI format, with the model `e5-small`, or with a provider that has an endpoint for embeddings."""
    asked = _read(await body_of(request))
    runtime = server.engine.runtime
    if asked.model == EMBEDDING:
        answer = await _own(runtime.embedders, asked)
    else:
        choice = await server.engine.providers.choice(asked.model)
        async with runtime.slot(choice.provider.name):
            answer = await embed(choice, asked.fields)
    return Response(dumps({**answer, "model": asked.model}), media_type="application/json")


def _read(body: Json) -> _Asked:
    """Check the fields that moot uses. Raise UsageError if one is not valid."""
    if not isinstance(body, dict):
        raise UsageError("The body is not a JSON object.", fix="Send an object with `model` and `input`.")
    model, source = body.get("model"), body.get("input")
    if not isinstance(model, str) or not model:
        raise UsageError("`model` is missing.", fix=f"Send {EMBEDDING}, or model@provider.")
    if not source or not isinstance(source, str | list):
        raise UsageError("`input` must be a non-empty string or list of strings.")
    if body.get("encoding_format", "float") not in ("float", "base64"):
        raise UsageError("`encoding_format` must be float or base64.")
    return _Asked(model, body)


async def _own(embedders: Embedders | None, asked: _Asked) -> JsonObject:
    """Return embeddings of the model for semantic search, as vectors of length 1. Raise UsageError if it is not installed."""
    if embedders is None:
        raise UsageError(f"The model {EMBEDDING} is not available in this process.")
    texts = _texts(asked.fields["input"])
    kind = asked.fields.get("input_type", "passage")
    if kind not in ("query", "passage"):
        raise UsageError("`input_type` must be query or passage.")
    embedder = await embedders.embedder()
    rows: list[Json] = []
    for index, text in enumerate(texts):
        vector = _unit(await to_thread.run_sync(partial(embedder.embed, text, question=kind == "query")))
        wanted = asked.fields.get("dimensions")
        if wanted is not None and wanted != len(vector):
            raise UsageError(f"{EMBEDDING} returns vectors with {len(vector)} dimensions, not {wanted!r}.", fix="Leave out `dimensions`.")
        shown: Json = _base64(vector) if asked.fields.get("encoding_format") == "base64" else list[Json](vector)
        rows.append({"object": "embedding", "index": index, "embedding": shown})
    tokens = sum(-(-len(text) // CHARACTERS) for text in texts)
    return {"object": "list", "data": rows, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}


def _texts(source: Json) -> list[str]:
    texts = [source] if isinstance(source, str) else [text for text in source if isinstance(text, str)] if isinstance(source, list) else []
    if not all(texts) or (isinstance(source, list) and len(texts) != len(source)):
        raise UsageError(f"For {EMBEDDING}, `input` must be a non-empty string or a list of non-empty strings.")
    if len(texts) > MOST:
        raise UsageError(f"`input` has {len(texts):,} strings. The maximum is {MOST:,}.")
    return texts


def _unit(vector: bytes) -> Sequence[float]:
    """Return a vector of signed 8-bit integers as floats, scaled to length 1."""
    numbers = array("b", vector)
    length = math.sqrt(sum(number * number for number in numbers)) or 1.0
    return [number / length for number in numbers]


def _base64(vector: Sequence[float]) -> str:
    """Encode a vector as little-endian 32-bit floats."""
    packed = array("f", vector)
    if sys.byteorder == "big":
        packed.byteswap()
    return base64.b64encode(packed.tobytes()).decode()
