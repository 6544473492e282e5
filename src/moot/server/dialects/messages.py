"""The Anthropic messages API: `POST /v1/messages` and token counting."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from moot.convert.callers.messages import MessagesAnswer, message_answer, read_messages
from moot.convert.callers.pieces import Change, Outcome, Piece
from moot.convert.history import estimate
from moot.server.auth import Chatter, Reader
from moot.server.dialects.answers import CallResponse
from moot.server.dialects.calls import Call, submit_call
from moot.server.dialects.router import ANSWER, BODY, OBJECT, ErrorFormat, body_of, router_of
from moot.server.state import CurrentServer
from moot.types.canonical import JsonObject, dumps
from moot.types.message import text_part

router = router_of("message")


@router.post("/messages", response_class=Response, responses=ANSWER, openapi_extra=BODY)
async def messages(server: CurrentServer, caller: Chatter, request: Request) -> Response:
    """Create a message in the Anthropic messages format; `model` is `agent:NAME` or `model@provider`."""
    parsed = read_messages(await body_of(request))
    parsed = replace(parsed, conversation=request.headers.get("x-moot-conversation", ""))
    call = await submit_call(server, caller, parsed, server.answers)
    return CallResponse(call, _Encoder(call))


@router.post("/messages/count_tokens", response_class=Response, responses=OBJECT, openapi_extra=BODY)
async def count_tokens(_: Reader, request: Request) -> Response:
    """Estimate the number of tokens of a request without calling a model."""
    parsed = read_messages(await body_of(request), counting=True)
    tools = [text_part(f"{tool.name} {tool.description} {dumps(tool.schema).decode()}") for tool in parsed.tools]
    parts = [text_part(parsed.system), *tools, *(part for message in parsed.messages for part in message.parts)]
    return Response(dumps({"input_tokens": estimate(parts)}), media_type="application/json")


class _Encoder:
    error_format: ErrorFormat = "message"
    keep_alive = b'event: ping\ndata: {"type":"ping"}\n\n'
    last = b""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._answer = MessagesAnswer(call.id, call.request.model, thinking=call.served.show_reasoning)

    def begin(self) -> list[JsonObject]:
        return self._answer.begin()

    def write(self, changes: Iterable[Change]) -> list[JsonObject]:
        return self._answer.tell(changes)

    def end(self, outcome: Outcome) -> list[JsonObject]:
        return self._answer.end(outcome)

    def whole(self, pieces: tuple[Piece, ...], outcome: Outcome) -> JsonObject:
        return message_answer(self._call.id, self._call.request.model, pieces, outcome, thinking=self._call.served.show_reasoning)

    def frames(self, data: list[JsonObject]) -> bytes:
        return b"".join(b"event: " + str(frame["type"]).encode() + b"\ndata: " + dumps(frame) + b"\n\n" for frame in data)
