"""Effects of an answer on other pending calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from moot.errors import Busy, UsageError
from moot.testing.script import Reply, ToolCall
from moot.types.approval import Answer, Approval, grants_of

pytestmark = pytest.mark.anyio


def shell(*commands: str) -> Reply:
    return Reply(tool_calls=[ToolCall("shell", {"command": command}) for command in commands])


async def waiting(place: Any, text: str = "go", **more: Any) -> tuple[Any, list[Approval]]:
    submitted = await place.submit(text, **more)
    run = await place.engine.runs.wait(submitted.run.id)
    assert run.status == "waiting"
    return run, await place.engine.store.records.approvals(run=run.id)


async def test_a_grant_answers_other_covered_calls_and_never_overrides_a_denial(stage: Callable[..., Any]) -> None:
    script = [shell("touch a"), shell("touch b"), shell("touch a"), Reply(text="done")]
    async with stage(script, mode="ask") as place:
        run, asked = await waiting(place)
        await place.engine.runs.answer(asked[0].id, Answer(True, "conversation"))
        run = await place.engine.runs.wait(run.id)
        assert run.status == "waiting"
        (second,) = await place.engine.store.records.approvals(run=run.id)
        await place.engine.runs.answer(second.id, Answer(False, reason="not that one"))
        run = await place.engine.runs.wait(run.id)
        assert (run.status, (place.directory / "a").exists(), (place.directory / "b").exists()) == ("finished", True, False)
        conversation = await place.engine.store.conversations.get(run.conversation)
        assert [grant.match for grant in grants_of(conversation.settings)] == ["touch a"]
        await place.engine.store.conversations.set_settings(conversation.id, {"mode": "ask"})
        again = await place.engine.store.conversations.get(conversation.id)
        assert grants_of(again.settings) == grants_of(conversation.settings), "settings that were read earlier undo no grant"
        assert await place.engine.store.grants.revoke(conversation.id, tool="shell", match="touch a")
        assert not await place.engine.store.grants.revoke(conversation.id, tool="shell", match="touch a")
        assert grants_of((await place.engine.store.conversations.get(conversation.id)).settings) == ()


async def test_an_invalid_answer_leaves_the_call_pending(stage: Callable[..., Any]) -> None:
    async with stage([shell("touch a > b"), Reply(text="done")], mode="ask") as place:
        run, (asked,) = await waiting(place)
        refused = [
            Answer(True, "conversation"),
            Answer(True, "always"),
            Answer(True, arguments=b"{"),
            Answer(True, arguments=b'{"command": 1}'),
            Answer(True, arguments=b'{"command": "a", "command": "b"}'),
        ]
        for answer in refused:
            with pytest.raises(UsageError):
                await place.engine.runs.answer(asked.id, answer)
        assert (await place.engine.store.records.approval(asked.id)).answer is None
        await place.engine.runs.answer(asked.id, Answer(False))
        with pytest.raises(Busy):
            await place.engine.runs.answer(asked.id, Answer(True))
        assert (await place.engine.runs.wait(run.id)).status == "finished"
        assert not (place.directory / "b").exists()


@pytest.mark.parametrize("pattern", ["*", "ls*", "touch b", ""])
async def test_a_pattern_that_covers_too_much_or_not_the_call_is_refused(stage: Callable[..., Any], pattern: str) -> None:
    async with stage([shell("touch a"), Reply(text="done")], mode="ask") as place:
        _, (asked,) = await waiting(place)
        with pytest.raises(UsageError):
            await place.engine.runs.answer(asked.id, Answer(True, "always", patterns=(pattern,)))
        assert not (place.engine.settings.home / "config.yaml").exists()


async def test_edited_arguments_are_approved_and_stored_next_to_the_original(stage: Callable[..., Any]) -> None:
    async with stage([shell("touch a"), Reply(text="done")], mode="ask") as place:
        run, (asked,) = await waiting(place)
        edited = b'{"command":"touch  b"}'
        await place.engine.runs.answer(asked.id, Answer(True, arguments=edited))
        assert (await place.engine.runs.wait(run.id)).status == "finished"
        kept = await place.engine.store.records.approval(asked.id)
        assert (kept.arguments, kept.answer.arguments, kept.used_at is not None) == (b'{"command":"touch a"}', edited, True)
        assert kept.answer.digest not in (b"", kept.digest)
        assert ((place.directory / "a").exists(), (place.directory / "b").exists()) == (False, True)


async def test_arguments_edited_into_a_denied_call_stay_denied(stage: Callable[..., Any]) -> None:
    from moot.config.settings import Permissions, Rule

    permissions = Permissions(rules=(Rule("shell", "deny", "touch b*"),))
    async with stage([shell("touch a"), Reply(text="done")], permissions=permissions) as place:
        run, (asked,) = await waiting(place)
        await place.engine.runs.answer(asked.id, replace(Answer(True), arguments=b'{"command":"touch b"}'))
        assert (await place.engine.runs.wait(run.id)).status == "finished"
        assert not (place.directory / "b").exists()
