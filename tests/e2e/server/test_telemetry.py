"""OpenTelemetry in servers: a request's trace continues in the run, whichever worker takes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")

from e2e.server.conftest import ServedHome
from e2e.server.test_workers import prompt, say
from e2e.test_telemetry import PARENT, Observed, parent
from moot.testing.script import Reply
from otlp_collector import Collector

pytestmark = pytest.mark.anyio

OUTER = (0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331)


async def test_the_traceparent_of_a_request_is_the_parent_of_its_run(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="Hello.", times=0)]) as server:
        seen = Observed(server.engine)
        for chat, header in (("first", PARENT), ("second", "00-not-a-trace"), ("third", "")):
            headers = {"traceparent": header} if header else {}
            async with server.client.post("/api/chat", json=prompt(chat, "hi"), headers=headers) as response:
                assert response.status == 200 and b"[DONE]" in await response.read()
        await server.engine.runs.settle(5)
    assert [parent(span) for span in seen.named("invoke_agent default")] == [OUTER, None, None]


@pytest.mark.slow
def test_each_worker_sends_what_it_did_before_the_server_ends(serve_home: Callable[..., ServedHome]) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    with Collector() as collector:
        home = serve_home([Reply(text="Hello.", times=0)], config=f"telemetry: {{enabled: true, endpoint: '{collector.url}'}}\n")
        home.start("--workers", "2")
        for number in range(8):
            assert say(home, f"chat-{number}", "hi") == "Hello."
        home.stop()
        names = [span.name for span in collector.spans()]
    assert names.count("invoke_agent default") == names.count("chat scripted") == 8
