"""Streams of an outside agent, which continues to work while it waits for an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from e2e.server.conftest import LiveServer
from e2e.server.stream_calls import messages, post, resumed, text
from e2e.server.test_chat import answered
from e2e.test_agent_questions import CALL, leg_of, opened
from moot.runtime.leg import Leg
from moot.types.approval import OutsideCall
from moot.types.event import Event

pytestmark = pytest.mark.anyio

OTHER = OutsideCall("call_2", "Bash", "pwd", b'{"command":"pwd"}', CALL.effects, "pwd", CALL.options, like="shell")


def said(id: str, words: str) -> Event:
    return Event(
        "chunks", ({"type": "text-start", "id": id}, {"type": "text-delta", "id": id, "delta": words}, {"type": "text-end", "id": id})
    )


async def work(leg: Leg) -> None:
    """Ask, use the answer, and ask about the next call."""
    await leg.decide(CALL)
    other = {"type": "tool-input-available", "toolCallId": "call_2", "toolName": "Bash", "input": {"command": "pwd"}, "dynamic": True}
    await leg.append(Event("chunks", ({"type": "tool-output-available", "toolCallId": "call_1", "output": "a.txt", "dynamic": True},)))
    await leg.append(Event("chunks", (other,)))
    await leg.decide(OTHER)


async def answer(server: LiveServer, leg: Leg, shown: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Allow the pending call from a client that has these messages. Return the chunks up to the next question."""
    return await post(server, {**answered(shown, True), "id": leg.fence.conversation})


@pytest.mark.parametrize("is_reloaded", [False, True])
async def test_a_client_that_answers_an_agent_gets_what_the_agent_sent_meanwhile(
    open_server: Callable[..., Any], is_reloaded: bool
) -> None:
    async with open_server(mode="ask") as server, anyio.create_task_group() as group:
        leg = await leg_of(server)
        chat = leg.fence.conversation
        (first,) = await leg.append(said("t1", "Looking. "))
        group.start_soon(work, leg)
        await opened(server, leg)
        at_the_question = await messages(server, chat)
        await leg.append(said("t2", "Still here. "), said("t3", "And here. "))
        seen = [chunk for _, chunk in await resumed(server, chat, **{"Last-Event-ID": f"{first}.2"})]
        assert [chunk["type"] for chunk in seen] == ["tool-approval-request", "finish"]
        since = await messages(server, chat)
        rest = await answer(server, leg, since if is_reloaded else at_the_question)
        assert text(rest) == ("" if is_reloaded else "Still here. And here. ")
        assert [chunk["toolCallId"] for chunk in rest if chunk["type"] == "tool-approval-request"] == ["call_2"]
        assert {"type": "tool-output-available", "toolCallId": "call_1", "output": "a.txt", "dynamic": True} in rest
        assert text(await answer(server, leg, since if is_reloaded else at_the_question)) == text(rest), "repeated"
        group.cancel_scope.cancel()
