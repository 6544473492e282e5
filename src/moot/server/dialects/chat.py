"""The OpenAI Chat Completions API: `POST /v1/chat/completions`."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from moot.convert.callers.chat import ChatAnswer, chat_completion, read_chat
from moot.server.auth import Chatter
from moot.server.dialects.answers import CallResponse, Encoder
from moot.server.dialects.bodies import CHAT_ANSWER, CHAT_BODY
from moot.server.dialects.calls import submit_call
from moot.server.dialects.router import body_of, router_of
from moot.server.idempotency import CurrentAttempt
from moot.server.state import CurrentServer

router = router_of("completion")


@router.post("/chat/completions", response_class=Response, responses=CHAT_ANSWER, openapi_extra=CHAT_BODY)
async def chat_completions(server: CurrentServer, caller: Chatter, attempt: CurrentAttempt, request: Request) -> Response:
    """Create a chat completion in the OpenAI format. `model` is `agent:NAME` or `model@provider`."""
    call = await submit_call(server, caller, read_chat(await body_of(request)), request.headers, attempt)
    head = call.id, call.request.model, call.created
    answer = ChatAnswer(*head, usage=call.request.stream_usage)
    return CallResponse(call, Encoder(answer, partial(chat_completion, *head), named=False, last=b"data: [DONE]\n\n"))
