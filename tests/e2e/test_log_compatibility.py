"""Unexpected log content: kinds and fields of a newer version of moot, damaged bytes, a journal with gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from moot.config.settings import Models, Permissions, Settings
from moot.engine import open_engine
from moot.store.database.connection import connect
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.testing.scripted import ScriptedServer
from moot.types.event import Event
from moot.types.message import text_of, text_part
from moot.types.run import Prompt

pytestmark = pytest.mark.anyio

STRANGE: list[Event] = [
    Event("of-the-future", (), b"\xff\x00", body={"a": 1}),
    Event("chunks", ({"type": "hologram-delta", "id": "h", "delta": 3}, {"type": "text-delta"}, {"type": "finish", "later": True})),
    Event("chunks", ({"type": "text-end", "id": "never opened"}, {"type": "tool-output-available", "toolCallId": "unknown"})),
    Event("journal", phase="end", key="tool:7.7.7", body=[1, 2]),
    Event("journal", phase="later", key="llm:x.y", body={"value": None}),
    Event("exchange", phase="start", key="llm:1.0", exchange="nobody's"),
    Event("meta", body="x"),
    Event("tombstone", body={"purged": True}),
    Event("raw", (), b"data: {broken\n\n"),
]


@pytest.mark.damaged  # with events of exchanges that were never opened
async def test_kinds_and_fields_of_a_newer_moot_are_kept_and_ignored(stage: Any) -> None:
    async with stage([Reply(text="First."), Reply(text="Second.")]) as on:
        first, _ = await on.ask("one")
        seqs = await on.engine.store.log.append(first.conversation, STRANGE)
        run, message = await on.ask("two", conversation=first.conversation)
        assert (run.status, text_of(message.parts)) == ("finished", "Second.")
        assert [text["content"] for text in on.server.requests[1].json["messages"] if text["role"] != "system"] == ["one", "First.", "two"]
        stored = await on.engine.store.log.read(first.conversation, after=seqs[0] - 1, limit=len(STRANGE))
        assert [event._replace(at=0, seq=0) for event in stored] == STRANGE
        branch = await on.engine.store.conversations.branch(first.conversation)
        assert [text_of(message.parts) for message in branch] == ["one", "First.", "two", "Second."]


def damage(home: Path, what: str) -> int:
    """Damage rows of the log directly in the database. Return their number."""
    connection = connect(home / "data" / "moot.db", writing=True)
    try:
        return connection.execute(f"UPDATE event SET chunks = x'5b7b', body = x'7b7b' WHERE {what}").rowcount
    finally:
        connection.close()


@pytest.mark.damaged
@pytest.mark.parametrize(
    "what",
    ["kind = 'raw'", "kind = 'journal'", "kind = 'exchange'", "kind = 'chunks'", "phase = 'end'", "1"],
)
async def test_a_run_with_a_damaged_log_is_readable_and_its_outcome_is_not_guessed(tmp_path: Path, what: str) -> None:
    def script(recorded: Recorded) -> Reply:
        if "still there?" in recorded.user_text:
            return Reply(text="I am.")
        if "'role': 'tool'" in str(recorded.json["messages"]):
            return Reply(text="All is", hang_at=2)
        return Reply(text="I look.", tool_calls=[ToolCall("list_files", {"path": "."})])

    async with ScriptedServer(script) as server:
        settings = Settings(
            tmp_path,
            models=Models(main="scripted@mine"),
            providers={"mine": server.provider("mine")},
            permissions=Permissions(mode="auto"),
        )
        async with open_engine(settings, seed=1) as engine:
            submitted = await engine.runs.submit(Prompt((text_part("go"),), directory=str(tmp_path)))
            with anyio.fail_after(60):
                while len(server.requests) < 2 or server.requests[1].sent == 0:
                    await anyio.sleep(0.01)
        assert damage(tmp_path, what) > 0
        async with open_engine(settings, seed=2) as engine:
            (run,) = await engine.store.records.runs()
            assert run.status == "interrupted"
            events = await engine.store.log.read(run.conversation)
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
            assert any(isinstance(event.body, dict) and event.body.get("damaged") for event in events)
            assert len(await engine.store.conversations.branch(run.conversation)) == 2
            with anyio.fail_after(60):
                await engine.runs.resume(run.id)
                run = await engine.runs.wait(run.id)
            assert run.error is not None and (run.status, run.error.kind) == ("failed", "store_corrupt")
            assert "is damaged" in run.error.message
            again = await engine.runs.submit(Prompt((text_part("still there?"),), conversation=run.conversation, directory=str(tmp_path)))
            assert (await engine.runs.wait(again.run.id)).status == "finished"
    assert submitted.run.id == run.id
