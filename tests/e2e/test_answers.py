"""Effects of an answer on other pending calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from moot.config.settings import Permissions, Rule
from moot.errors import Busy, UsageError
from moot.testing.script import Reply, ToolCall
from moot.types.approval import Answer, Approval
from moot.types.ids import new_id

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
        assert [grant.match for grant in conversation.grants] == ["touch a"]
        await place.engine.store.conversations.update(conversation.id, settings={"mode": "ask"})
        again = await place.engine.store.conversations.get(conversation.id)
        assert again.grants == conversation.grants, "settings that were read earlier undo no grant"
        fork = await place.engine.store.tree.fork(conversation.id, message=run.message)
        assert fork.grants == (), "a grant is for one conversation"
        forged = await place.engine.store.conversations.create(
            replace(fork, id=new_id(), no=0, settings={"grants": [{"tool": "shell", "match": "*"}]})
        )
        assert forged.grants == ()
        assert await place.engine.store.grants.revoke(conversation.id, tool="shell", match="touch a")
        assert not await place.engine.store.grants.revoke(conversation.id, tool="shell", match="touch a")
        assert (await place.engine.store.conversations.get(conversation.id)).grants == ()


@pytest.mark.parametrize(
    ("timeout", "attended", "expires"),
    [(None, False, 300_000), (None, True, None), (60.0, True, 60_000), (0.0, False, None)],
)
async def test_a_question_at_a_terminal_never_expires_unless_a_time_is_configured(
    stage: Callable[..., Any], timeout: float | None, attended: bool, expires: int | None
) -> None:
    async with stage([shell("touch a"), Reply(text="done")], permissions=Permissions(mode="ask", timeout=timeout)) as place:
        _, (asked,) = await waiting(place, settings={"attended": True} if attended else {})
        assert (asked.expires_at and asked.expires_at - asked.asked_at) == expires


async def test_the_first_answer_wins_and_an_expired_question_takes_none(stage: Callable[..., Any]) -> None:
    async with stage([shell("touch a"), Reply(text="done"), shell("touch b"), Reply(text="done")], mode="ask") as place:
        records = place.engine.store.records
        run, (asked,) = await waiting(place)
        await place.engine.runs.answer(asked.id, Answer(False, reason="no"))
        for late in (Answer(True), Answer(True, "conversation"), Answer(False)):
            with pytest.raises(Busy, match="already been denied"):
                await place.engine.runs.answer(asked.id, late)
        await place.engine.runs.wait(run.id)
        assert (await records.approval(asked.id)).answer.reason == "no"
        run, (asked,) = await waiting(place)
        await place.engine.store._writer.write(lambda transaction: transaction.execute("UPDATE approval SET expires_at = 1"))
        with pytest.raises(Busy, match="expired"):
            await place.engine.runs.answer(asked.id, Answer(True))
        await place.engine.runs.wake(run.id)
        assert (await place.engine.runs.wait(run.id)).status == "finished"
        assert (await records.approval(asked.id)).answer.approved is False
        assert not list(place.directory.iterdir())


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


def write(path: str) -> ToolCall:
    return ToolCall("write_file", {"path": path, "content": "x"})


@pytest.mark.parametrize("mode", [None, "ask"])
async def test_allowing_all_edits_lasts_for_the_conversation(stage: Callable[..., Any], mode: Any) -> None:
    script = [
        Reply(tool_calls=[write("a"), write("b")]),
        Reply(tool_calls=[write("c")]),
        Reply(text="done"),
        Reply(tool_calls=[write("d")]),
        Reply(tool_calls=[ToolCall("shell", {"command": "touch e"})]),
        Reply(text="done"),
    ]
    async with stage(script, mode="ask") as place:
        run, asked = await waiting(place, mode=mode)
        assert [approval.edits for approval in asked] == [True]
        await place.engine.runs.answer(asked[0].id, Answer(True, "edits"))
        run = await place.engine.runs.wait(run.id)
        assert (run.status, [(place.directory / name).exists() for name in "abc"]) == ("finished", [True, True, True])
        conversation = await place.engine.store.conversations.get(run.conversation)
        assert conversation.own_settings.mode == "edits"
        _, (shell_call,) = await waiting(place, "again", conversation=conversation.id)
        assert (shell_call.tool, shell_call.edits, (place.directory / "d").exists()) == ("shell", False, True)
        with pytest.raises(UsageError, match="not a file edit"):
            await place.engine.runs.answer(shell_call.id, Answer(True, "edits"))


async def test_edits_that_a_rule_asks_about_are_not_offered_as_all_edits(stage: Callable[..., Any]) -> None:
    async with stage([Reply(tool_calls=[write("a")]), Reply(text="done")], mode="ask") as place:
        runtime = place.engine.runtime
        rules = (Rule("write_file", "ask", "a"),)
        runtime.settings = replace(runtime.settings, permissions=replace(runtime.settings.permissions, rules=rules))
        _, (asked,) = await waiting(place)
        assert not asked.edits
        with pytest.raises(UsageError, match="not a file edit"):
            await place.engine.runs.answer(asked.id, Answer(True, "edits"))
        run = await place.engine.store.records.run(asked.run)
        assert (await place.engine.store.conversations.get(run.conversation)).own_settings.mode is None


async def test_a_mode_set_during_a_run_applies_from_its_next_step(stage: Callable[..., Any]) -> None:
    script = [Reply(tool_calls=[write("a")]), Reply(tool_calls=[write("b")]), Reply(text="done")]
    async with stage(script, mode="ask") as place:
        run, (asked,) = await waiting(place)
        await place.engine.store.conversations.update(run.conversation, settings={"mode": "plan"})
        await place.engine.runs.answer(asked.id, Answer(True))
        run = await place.engine.runs.wait(run.id)
        assert run.status == "finished"
        assert not (place.directory / "b").exists()
