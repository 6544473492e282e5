"""The OpenAI Responses API: `POST /v1/responses`, retrieval and cancellation."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from moot.convert.callers.pieces import pieces_of
from moot.convert.callers.responses import Head, ResponsesAnswer, read_responses, response_answer, response_begun
from moot.server.auth import Chatter, Reader
from moot.server.credentials import Caller
from moot.server.dialects.answers import CallResponse, Encoder, outcome_of
from moot.server.dialects.bodies import RESPONSE, RESPONSES_ANSWER, RESPONSES_BODY
from moot.server.dialects.calls import AGENT, run_of_response, submit_call
from moot.server.dialects.router import body_of, router_of
from moot.server.idempotency import CurrentAttempt
from moot.server.state import CurrentServer, Server
from moot.types.canonical import dumps
from moot.types.run import TERMINAL
from moot.types.served import Served

router = router_of("completion")


@router.post("/responses", response_class=Response, responses=RESPONSES_ANSWER, openapi_extra=RESPONSES_BODY)
async def responses(server: CurrentServer, caller: Chatter, attempt: CurrentAttempt, request: Request) -> Response:
    """Create a response in the format of the OpenAI Responses API. `model` is `agent:NAME` or `model@provider`."""
    call = await submit_call(server, caller, read_responses(await body_of(request)), request.headers, attempt)
    head = Head(call.id, call.request.model, call.created, call.request)
    return CallResponse(call, Encoder(ResponsesAnswer(head), partial(response_answer, head)))


@router.get("/responses/{response_id}", response_class=Response, responses=RESPONSE)
async def response(server: CurrentServer, caller: Reader, response_id: str) -> Response:
    """Get a response, complete or in progress."""
    return await _shown(server, caller, await run_of_response(caller, response_id))


@router.post("/responses/{response_id}/cancel", response_class=Response, responses=RESPONSE)
async def cancel_response(server: CurrentServer, caller: Chatter, response_id: str) -> Response:
    """Cancel a response in progress; its output so far is kept."""
    run = await run_of_response(caller, response_id)
    await server.engine.runs.cancel(run)
    await server.engine.runs.wait(run)
    return await _shown(server, caller, run)


async def _shown(server: Server, caller: Caller, id: str) -> Response:
    run = await caller.store.records.run(id)
    message = await caller.store.conversations.message(run.message)
    served = Served.of(run.settings) or Served()
    head = Head(run.id, run.model if served.plain else AGENT + run.agent, run.created_at // 1000)
    pieces = pieces_of(message.parts, served.takes)
    body = response_answer(head, pieces, await outcome_of(server.engine, run)) if run.status in TERMINAL else response_begun(head, pieces)
    return Response(dumps(body), media_type="application/json")
