"""The settings of a prompt, and which of them its conversation keeps."""

from __future__ import annotations

from typing import Any

import pytest

from moot.testing.script import Reply
from moot.types.agent import Agent

pytestmark = pytest.mark.anyio

AGENTS = {name: Agent(name=name) for name in ("default", "reviewer", "writer")}


async def test_a_conversation_found_by_its_key_keeps_its_agent_and_model(stage: Any) -> None:
    async with stage([Reply(text="one"), Reply(text="two"), Reply(text="three")], agents=AGENTS) as on:
        first, _ = await on.ask("a", key="cron:nightly", agent="reviewer", model="big@mine")
        second, _ = await on.ask("b", key="cron:nightly")
        assert second.conversation == first.conversation
        assert (second.agent, second.model) == ("reviewer", "big@mine")
        assert [request.json["model"] for request in on.server.requests] == ["big", "big"]
        third, _ = await on.ask("c", key="cron:nightly", agent="writer", model="small@mine")
        kept = await on.engine.store.conversations.by_key("cron:nightly")
        assert third.conversation == first.conversation and (kept.agent, kept.model) == ("writer", "small@mine")
