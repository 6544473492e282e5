"""The OpenAI chat completions API: `POST /v1/chat/completions`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from moot.convert.callers.chat import ChatAnswer, chat_completion, read_chat
from moot.convert.callers.pieces import Change, Outcome, Piece
from moot.server.auth import Chatter
from moot.server.dialects.answers import CallResponse
from moot.server.dialects.calls import Call, submit_call
from moot.server.dialects.router import ANSWER, BODY, ErrorFormat, body_of, router_of
from moot.server.state import CurrentServer
from moot.types.canonical import JsonObject, dumps

router = router_of("completion")


@router.post("/chat/completions", response_class=Response, responses=ANSWER, openapi_extra=BODY)
async def chat_completions(server: CurrentServer, caller: Chatter, request: Request) -> Response:
    """Create a completion in the OpenAI chat completions format; `model` is `agent:NAME` or `model@provider`."""
    parsed = read_chat(await body_of(request))
    parsed = replace(parsed, conversation=request.headers.get("x-moot-conversation", ""))
    call = await submit_call(server, caller, parsed, server.answers)
    return CallResponse(call, _Encoder(call))


class _Encoder:
    error_format: ErrorFormat = "completion"
    keep_alive = b": keep-alive\n\n"
    last = b"data: [DONE]\n\n"

    def __init__(self, call: Call) -> None:
        self._call = call
        self._answer = ChatAnswer(call.id, call.request.model, call.created, usage=call.request.stream_usage)

    def begin(self) -> list[JsonObject]:
        return self._answer.begin()

    def write(self, changes: Iterable[Change]) -> list[JsonObject]:
        return self._answer.tell(changes)

    def end(self, outcome: Outcome) -> list[JsonObject]:
        return self._answer.end(outcome)

    def whole(self, pieces: tuple[Piece, ...], outcome: Outcome) -> JsonObject:
        return chat_completion(self._call.id, self._call.request.model, self._call.created, pieces, outcome)

    def frames(self, data: list[JsonObject]) -> bytes:
        return b"".join(b"data: " + dumps(frame) + b"\n\n" for frame in data)
