"""`POST /v1/responses`, and an answer looked up or stopped later."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from moot.convert.callers.pieces import Change, Outcome, Piece, pieces_of
from moot.convert.callers.responses import Head, ResponsesAnswer, read_responses, response_answer, response_begun
from moot.server.auth import Chatter, Reader
from moot.server.credentials import Caller
from moot.server.dialects.answers import Answering, ending
from moot.server.dialects.calls import AGENT, Call, place, previous
from moot.server.dialects.router import ANSWER, BODY, OBJECT, Tongue, body_of, router_of
from moot.server.state import Here, Server
from moot.types.canonical import JsonObject, dumps
from moot.types.run import TERMINAL
from moot.types.served import Served

router = router_of("completion")


@router.post("/responses", response_class=Response, responses=ANSWER, openapi_extra=BODY)
async def responses(here: Here, caller: Chatter, request: Request) -> Response:
    """Answers as a model does in OpenAI responses; `model` is `agent:NAME` or `model@provider`."""
    asked = read_responses(await body_of(request))
    if not asked.conversation and not asked.after:
        asked = replace(asked, conversation=request.headers.get("x-moot-conversation", ""))
    call = await place(here, caller, asked, here.given)
    return Answering(call, _Scribe(call))


@router.get("/responses/{response_id}", response_class=Response, responses=OBJECT)
async def response(here: Here, caller: Reader, response_id: str) -> Response:
    """Shows an answer that was given, or what has come of it so far."""
    return await _shown(here, caller, await previous(caller, response_id))


@router.post("/responses/{response_id}/cancel", response_class=Response, responses=OBJECT)
async def cancel_response(here: Here, caller: Chatter, response_id: str) -> Response:
    """Stops an answer that is being given; what was said is kept."""
    run = await previous(caller, response_id)
    await here.engine.runs.cancel(run)
    await here.engine.runs.wait(run)
    return await _shown(here, caller, run)


async def _shown(server: Server, caller: Caller, id: str) -> Response:
    run = await caller.store.records.run(id)
    message = await caller.store.conversations.message(run.message)
    served = Served.of(run.settings) or Served()
    head = Head(run.id, run.model if served.plain else AGENT + run.agent, run.created_at // 1000)
    pieces = pieces_of(message.parts, served.takes)
    told = response_answer(head, pieces, await ending(server.engine, run)) if run.status in TERMINAL else response_begun(head, pieces)
    return Response(dumps(told), media_type="application/json")


class _Scribe:
    tongue: Tongue = "completion"
    beat = b": still at it\n\n"
    last = b""

    def __init__(self, call: Call) -> None:
        self._head = Head(call.id, call.asked.model, call.created, call.asked)
        self._answer = ResponsesAnswer(self._head)

    def begin(self) -> list[JsonObject]:
        return self._answer.begin()

    def tell(self, changes: Iterable[Change]) -> list[JsonObject]:
        return self._answer.tell(changes)

    def end(self, outcome: Outcome) -> list[JsonObject]:
        return self._answer.end(outcome)

    def whole(self, pieces: tuple[Piece, ...], outcome: Outcome) -> JsonObject:
        return response_answer(self._head, pieces, outcome)

    def frames(self, data: list[JsonObject]) -> bytes:
        return b"".join(b"event: " + str(frame["type"]).encode() + b"\ndata: " + dumps(frame) + b"\n\n" for frame in data)
