"""Routes for incoming webhooks, with which other programs start runs, and for the history of outgoing webhooks."""

from __future__ import annotations

from typing import Annotated

import anyio
from anyio import to_thread
from fastapi import Query, Request, Response

from moot.features.webhooks.receiver import LONGEST, SIGNATURE, delivery_of, is_authentic, prompt_of, secret_of
from moot.features.webhooks.sender import send_test
from moot.server.auth import Operator, Reader, Router, address_of
from moot.server.models import ListOut, Out
from moot.server.problems import Problem
from moot.server.state import CurrentServer
from moot.types.message import text_of
from moot.types.run import TERMINAL, RunStatus
from moot.types.token import LOCAL_USER
from moot.types.webhook import Outgoing

LONGEST_WAIT = 300
"""Maximum number of seconds that a request waits for the answer."""


class DeliveryOut(Out, of=Outgoing, fields="webhook event id at status tries due_at reason run conversation"):
    """A delivery of an event to an outgoing webhook."""


class HookedOut(Out):
    """The run started by a delivery. A repeated delivery returns the same run."""

    run: str
    conversation: str
    status: RunStatus
    url: str
    """Path of the run in this API. Reading it requires a token."""
    text: str
    """The answer, if the run ended within `wait` seconds; otherwise empty."""


router = Router(prefix="/api/webhooks", tags=["webhooks"])


@router.post(
    "/{name}",
    status_code=202,
    responses={200: {"model": HookedOut, "description": "The run ended within `wait` seconds."}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {}, "example": {"repository": "shop", "branch": "main"}}},
        }
    },
)
async def receive_webhook(
    server: CurrentServer,
    request: Request,
    response: Response,
    name: str,
    wait: Annotated[int, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait for the answer.")] = 0,
) -> HookedOut:
    """Start a run with the prompt of a configured webhook. Authenticated by the webhook's own secret, not by a token."""
    engine = server.engine
    webhook = engine.runtime.settings.webhooks.get(name)
    server.guesses.check(address_of(request))
    body = await _body(request)
    secret = await to_thread.run_sync(secret_of, webhook)
    headers = {key.lower(): value for key, value in request.headers.items()}
    # an unknown name is refused like a wrong secret, so that names can't be guessed
    if not is_authentic(webhook, secret, headers, body, engine.runtime.now() / 1_000_000) or webhook is None:
        server.guesses.record(address_of(request))
        fix = f"Check the name, the secret, the clock and the header {SIGNATURE}."
        raise Problem(401, "There is no such webhook, or the delivery is not authentic or is too old.", fix=fix)
    submitted = await engine.runs.submit(prompt_of(name, webhook, delivery_of(webhook, headers, body)))
    run, text = submitted.run, ""
    with anyio.move_on_after(wait):
        run = await engine.runs.wait(run.id)
    if wait and run.status in TERMINAL:
        text = text_of((await engine.store.conversations.message(run.message)).parts)
        response.status_code = 200
    return HookedOut(run=run.id, conversation=run.conversation, status=run.status, url=f"/api/runs/{run.id}", text=text)


outgoing_router = Router(prefix="/api/outgoing-webhooks", tags=["webhooks"])


@outgoing_router.get("/history")
async def list_deliveries(
    server: CurrentServer,
    caller: Reader,
    webhook: Annotated[str | None, Query(max_length=64, description="Name of a webhook; defaults to all webhooks.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> ListOut[DeliveryOut]:
    """List deliveries to outgoing webhooks, newest first. The list is empty for all users except the one who runs the server."""
    found = await server.engine.store.webhooks.history(webhook, limit=limit) if caller.owner_id == LOCAL_USER else []
    return ListOut(data=[DeliveryOut.of(item) for item in found])


@outgoing_router.post("/{name}/test")
async def test_outgoing_webhook(server: CurrentServer, caller: Operator, name: str) -> DeliveryOut:
    """Send a test event to an outgoing webhook. The response says whether it was accepted."""
    runtime = server.engine.runtime
    return DeliveryOut.of(await send_test(server.engine.store, runtime.settings.outgoing_webhooks, name, runtime.clock))


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > LONGEST:
            raise Problem(413, f"A delivery can have at most {LONGEST:,} bytes.", headers={"connection": "close"})
    return bytes(body)
