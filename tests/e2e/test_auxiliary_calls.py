"""Auxiliary model calls outside of runs: what the log records, and that nothing else changes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from moot.errors import ProviderError, UsageError
from moot.runtime.auxiliary import auxiliary_call, record_media_call
from moot.testing.script import Reply
from moot.types.media import MediaCall, MediaResponse, MediaResult
from moot.types.message import Message, text_of, text_part
from moot.types.run import Prompt

pytestmark = pytest.mark.anyio

DIALECTS = ["openai-chat", "anthropic"]
QUESTION = Message("0", "user", (text_part("explain this please"),))
ANSWERS = [
    Reply(when="explain this", text="It lists files.", reasoning="Hm.", times=0, chunk_size=4),
    Reply(when="slowly", text="one two three four five six", chunk_size=3, delay=0.02),
    Reply(when="refused", status=401, error="no", times=0),
    Reply(when="", text="Hello.", times=0),
]


async def explained(on: Any, conversation: str, question: Message = QUESTION) -> str:
    return (await auxiliary_call(on.engine.runtime, conversation, "explain", "Explain.", [question], model="main")).text


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_auxiliary_call_is_recorded_byte_for_byte_without_a_run(stage: Any, dialect: str) -> None:
    async with stage(ANSWERS, dialect=dialect) as on:
        run, message = await on.ask("Hi")
        store = on.engine.store
        before = await store.log.last_seq(run.conversation)
        sums = await store.conversations.get(run.conversation)
        assert await explained(on, run.conversation) == "It lists files."
        events = await store.log.read(run.conversation, after=before)
        assert [events[0].kind, events[-1].kind] == ["exchange", "exchange"] and {event.kind for event in events[1:-1]} == {"raw"}
        assert {event.run for event in events} == {None} and len({event.exchange for event in events}) == 1
        assert len(b"".join(event.raw or b"" for event in events)) == on.server.requests[-1].sent
        end = events[-1].body
        assert isinstance(end, dict) and end["ended"] == "eof" and end["usage"] == {"input": 12, "output": 7}
        exchange = await store.records.exchange(str(events[0].exchange))
        assert exchange is not None and (exchange.purpose, exchange.run, exchange.ended) == ("explain", "", "eof")
        pieces: Any = exchange.request["pieces"]
        assert b"".join([await store.blobs.get(piece) for piece in pieces]) == on.server.requests[-1].body
        assert await store.conversations.get(run.conversation) == sums
        assert await store.conversations.message(run.message) == message


async def test_an_auxiliary_call_during_a_run_does_not_affect_it(stage: Any) -> None:
    async with stage(ANSWERS) as on:
        submitted = await on.submit("slowly")
        said: list[str] = []

        async def whisper() -> None:
            said.append(await explained(on, submitted.conversation.id))

        async with anyio.create_task_group() as group:
            group.start_soon(whisper)
            run = await on.follow(submitted)
        message = await on.engine.store.conversations.message(run.message)
        assert said == ["It lists files."]
        assert (run.status, text_of(message.parts)) == ("finished", "one two three four five six")
        assert run.usage.input == 12
        events = await on.engine.store.log.read(run.conversation)
        runs = [event.run for event in events[2:]]
        assert None in runs[: len(runs) - runs[::-1].index(run.id)]
        seqs = [event.seq for event in on.seen]
        assert seqs == sorted(set(seqs)) and seqs == list(range(seqs[0], seqs[-1] + 1))


async def test_data_received_during_a_cancel_is_logged(stage: Any) -> None:
    async with stage(ANSWERS) as on:  # the store is verified after the test
        run, _ = await on.ask("Hi")
        choice = await on.engine.providers.choice("main")
        scope = anyio.CancelScope()

        async def reads() -> AsyncGenerator[tuple[bytes, ...], None]:
            scope.cancel()
            yield (b'data: {"choices":[{"index":0,"delta":{"content":"All"},"finish_reason":"stop"}]}\n\n',)

        async def made(_: MediaResponse) -> MediaResult:
            raise AssertionError("it was cancelled")

        call = MediaCall("explain", choice.dialect.name, b"{}", choice.dialect.translator, reads, made)
        with scope:
            await record_media_call(on.engine.runtime, run.conversation, choice, call)
        last = (await on.engine.store.log.read(run.conversation))[-2:]
        assert [event.kind for event in last] == ["raw", "exchange"]
        end = last[-1].body
        assert isinstance(end, dict) and end["ended"] == "eof"


async def test_a_rejected_auxiliary_call_is_recorded_and_raised(stage: Any) -> None:
    async with stage(ANSWERS) as on:
        run, _ = await on.ask("Hi")
        before = await on.engine.store.log.last_seq(run.conversation)
        with pytest.raises(ProviderError):
            await explained(on, run.conversation, Message("0", "user", (text_part("refused"),)))
        end = (await on.engine.store.log.read(run.conversation, after=before))[-1]
        assert end.body["ended"] == "cut" and end.body["charged"] == 0 and end.body["error"]["kind"] == "auth"
        with pytest.raises(UsageError):
            await auxiliary_call(on.engine.runtime, run.conversation, "explain", "", [QUESTION], model="none@nowhere")


async def test_a_cancelled_auxiliary_call_is_logged_as_cancelled(stage: Any) -> None:
    async with stage([Reply(when="explain", text="word " * 100, delay=0.05, times=0), Reply(text="Hello.")]) as on:
        run, _ = await on.ask("Hi")
        before = await on.engine.store.log.last_seq(run.conversation)
        with anyio.move_on_after(0.3) as scope:
            await explained(on, run.conversation)
        assert scope.cancelled_caught
        end = (await on.engine.store.log.read(run.conversation, after=before))[-1]
        assert (end.kind, end.phase, end.body["ended"]) == ("exchange", "end", "cancelled")


async def test_an_edited_prompt_is_answered_on_its_own_branch(stage: Any, directory: Path) -> None:
    async with stage([Reply(when="TWO", text="new"), Reply(when="", text="old", times=0)]) as on:
        run, _ = await on.ask("one")
        second, _ = await on.ask("two", conversation=run.conversation)
        store = on.engine.store
        branch = await store.conversations.branch(run.conversation)
        await on.ask("TWO", conversation=run.conversation, edits=branch[2].id)
        assert [text_of(message.parts) for message in await store.conversations.branch(run.conversation)] == ["one", "old", "TWO", "new"]
        assert "two" not in str(on.server.requests[-1].json["messages"])
        with pytest.raises(UsageError, match="can't be replaced by an empty one"):
            await on.engine.runs.submit(_prompt(run.conversation, edits=branch[2].id))
        await store.tree.switch(run.conversation, second.message)
        await on.follow(await on.engine.runs.submit(_prompt(run.conversation, answers=second.message)))
        assert [node.shown for node in await store.tree.nodes(run.conversation)] == [True, True, True, False, False, False, True]
        assert "two" in str(on.server.requests[-1].json["messages"]) and "TWO" not in str(on.server.requests[-1].json["messages"])


async def test_a_deleted_message_is_not_sent_to_a_model(stage: Any) -> None:
    async with stage([Reply(text="fine", times=0)]) as on:
        run, _ = await on.ask("secret plans")
        await on.ask("more", conversation=run.conversation)
        branch = await on.engine.store.conversations.branch(run.conversation)
        await on.engine.store.tree.delete(run.conversation, [branch[0].id, branch[1].id])
        await on.ask("again", conversation=run.conversation)
        assert "secret" not in str(on.server.requests[-1].json["messages"]) and "more" in str(on.server.requests[-1].json["messages"])


def _prompt(conversation: str, **more: Any) -> Prompt:
    return Prompt((), conversation=conversation, **more)
