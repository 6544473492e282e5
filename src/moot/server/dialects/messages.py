"""The Anthropic Messages API: `POST /v1/messages` and token counting."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from moot.convert.callers.messages import MessagesAnswer, message_answer, read_messages
from moot.convert.history import estimate
from moot.server.auth import Chatter, Reader
from moot.server.dialects.answers import CallResponse, Encoder
from moot.server.dialects.bodies import COUNT_ANSWER, COUNT_BODY, MESSAGES_ANSWER, MESSAGES_BODY
from moot.server.dialects.calls import submit_call
from moot.server.dialects.router import body_of, router_of
from moot.server.idempotency import CurrentAttempt
from moot.server.state import CurrentServer
from moot.types.canonical import dumps
from moot.types.message import text_part

router = router_of("message")

_PING = b'event: ping\ndata: {"type":"ping"}\n\n'


@router.post("/messages", response_class=Response, responses=MESSAGES_ANSWER, openapi_extra=MESSAGES_BODY)
async def messages(server: CurrentServer, caller: Chatter, attempt: CurrentAttempt, request: Request) -> Response:
    """Create a message in the Anthropic format. `model` is `agent:NAME` or `model@provider`."""
    call = await submit_call(server, caller, read_messages(await body_of(request)), request.headers, attempt)
    head, thinking = (call.id, call.request.model), call.served.show_reasoning
    answer = MessagesAnswer(*head, thinking=thinking)
    whole = partial(message_answer, *head, thinking=thinking)
    return CallResponse(call, Encoder(answer, whole, "message", keep_alive=_PING, queued=_PING))


@router.post("/messages/count_tokens", response_class=Response, responses=COUNT_ANSWER, openapi_extra=COUNT_BODY)
async def count_tokens(_: Reader, request: Request) -> Response:
    """Estimate the number of tokens of a request without calling a model."""
    parsed = read_messages(await body_of(request), counting=True)
    tools = [text_part(f"{tool.name} {tool.description} {dumps(tool.schema).decode()}") for tool in parsed.tools]
    parts = [text_part(parsed.system), *tools, *(part for message in parsed.messages for part in message.parts)]
    return Response(dumps({"input_tokens": estimate(parts)}), media_type="application/json")
