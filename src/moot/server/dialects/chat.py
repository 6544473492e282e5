"""`POST /v1/chat/completions`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from moot.convert.callers.chat import ChatAnswer, chat_completion, read_chat
from moot.convert.callers.pieces import Change, Outcome, Piece
from moot.server.auth import Chatter
from moot.server.dialects.answers import Answering
from moot.server.dialects.calls import Call, place
from moot.server.dialects.router import ANSWER, BODY, Tongue, body_of, router_of
from moot.server.state import Here
from moot.types.canonical import JsonObject, dumps

router = router_of("completion")


@router.post("/chat/completions", response_class=Response, responses=ANSWER, openapi_extra=BODY)
async def chat_completions(here: Here, caller: Chatter, request: Request) -> Response:
    """Answers as a model does in OpenAI chat completions; `model` is `agent:NAME` or `model@provider`."""
    asked = read_chat(await body_of(request))
    asked = replace(asked, conversation=request.headers.get("x-moot-conversation", ""))
    call = await place(here, caller, asked, here.given)
    return Answering(call, _Scribe(call))


class _Scribe:
    tongue: Tongue = "completion"
    beat = b": still at it\n\n"
    last = b"data: [DONE]\n\n"

    def __init__(self, call: Call) -> None:
        self._call = call
        self._answer = ChatAnswer(call.id, call.asked.model, call.created, usage=call.asked.stream_usage)

    def begin(self) -> list[JsonObject]:
        return self._answer.begin()

    def tell(self, changes: Iterable[Change]) -> list[JsonObject]:
        return self._answer.tell(changes)

    def end(self, outcome: Outcome) -> list[JsonObject]:
        return self._answer.end(outcome)

    def whole(self, pieces: tuple[Piece, ...], outcome: Outcome) -> JsonObject:
        return chat_completion(self._call.id, self._call.asked.model, self._call.created, pieces, outcome)

    def frames(self, data: list[JsonObject]) -> bytes:
        return b"".join(b"data: " + dumps(frame) + b"\n\n" for frame in data)
