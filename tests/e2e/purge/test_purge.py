"""Purged or redacted text is in no byte of the home any more; everything else is unchanged."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from e2e.conftest import Stage
from e2e.purge.entry_points import LARGE, WORD, found_in, lived, script, sealed, word
from moot.errors import Busy, NotFound
from moot.store.database.connection import connect
from moot.testing.script import Reply
from moot.types.conversation import Conversation
from moot.types.maintenance import REDACTION_MARK, Secret
from moot.types.message import is_tool, text_of
from verification import verify

pytestmark = pytest.mark.anyio

Opened = Callable[..., Any]
SECRET = Secret((WORD,))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def with_words(stage: Opened, home: Path) -> Opened:
    @asynccontextmanager
    async def opened(**more: Any) -> AsyncIterator[tuple[Stage, Conversation]]:
        async with stage(script, **more) as on:
            yield on, await lived(on, home / "state")

    return opened


@pytest.mark.parametrize("through", [0, 30])
async def test_a_purged_conversation_leaves_no_byte_in_the_home(with_words: Opened, home: Path, through: int) -> None:
    async with with_words() as (on, conversation):
        store = on.engine.store
        if through:
            await sealed(store, conversation, through)
        assert len(found_in(home)) >= 4
        receipt = await store.erasure.purge([conversation.id])
        assert receipt.done_at is not None and not receipt.left
        assert receipt.conversations == [conversation.id]
        assert receipt.rows["event"] + receipt.rows.get("segment", 0) > 10 and receipt.rows["idempotency"] == 1
        assert receipt.blobs > 3 and receipt.blob_bytes > LARGE
        assert {Path(file.path).name for file in receipt.files} == {f"{conversation.id}.json", "history.jsonl", "checkpoints.db"}
        assert found_in(home) == []  # while the database is open
        with pytest.raises(NotFound):
            await store.conversations.get(conversation.id)
        assert not (await store.search.search(WORD)).hits
        assert (await store.erasure.receipts()) == [receipt]
    assert found_in(home) == []
    assert "innocent" in (home / "state" / "history.jsonl").read_text()


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("through", [0, 30])
async def test_a_redacted_text_leaves_no_byte_and_the_rest_stays_readable(
    with_words: Opened, home: Path, dialect: str, through: int
) -> None:
    async with with_words(dialect=dialect) as (on, conversation):
        store = on.engine.store
        fork = await store.tree.fork(conversation.id)
        if through:
            await sealed(store, conversation, through)
        seqs = [event.seq for event in await store.log.read(conversation.id, limit=1000)]
        receipt = await store.erasure.redact(SECRET)
        assert receipt.done_at is not None and not receipt.left
        assert set(receipt.conversations) == {conversation.id, fork.id}
        assert found_in(home) == []
        events = await store.log.read(conversation.id, limit=1000)
        assert [event.seq for event in events] == seqs
        gone = [event for event in events if event.redacted is not None]
        assert gone and all(event.raw is None and event.redacted["reason"] == "redacted" and event.redacted["at"] for event in gone)
        for id in (conversation.id, fork.id):
            user, answer, *_ = await store.conversations.branch(id)
            assert text_of(user.parts) == f"work {REDACTION_MARK}-prompt"
            assert text_of(answer.parts) == f"I look for {REDACTION_MARK}-text.It is {REDACTION_MARK}-answer, and that is all of it."
            calls = [part for part in answer.parts if is_tool(part)]
            assert [call["input"]["command"].split()[-1] for call in calls] == [f"{REDACTION_MARK}-arguments", f"{REDACTION_MARK}-output"]  # type: ignore[index]
        assert (await store.conversations.get(conversation.id)).title == f"{REDACTION_MARK}-title"
        assert [hit.conversation for hit in (await store.search.search("redacted")).hits]
        again = await store.erasure.redact(SECRET, dry_run=True)
        assert not again.rows and not again.blobs and not again.conversations
    judged = await verify(home)
    assert judged.redacted >= len(gone) and judged.redacted_exchanges and not judged.damaged


async def test_a_redacted_conversation_can_be_continued(with_words: Opened, home: Path) -> None:
    async with with_words() as (on, conversation):
        await on.engine.store.erasure.redact(SECRET)
        run, message = await on.ask("and now?", conversation=conversation.id)
        assert run.status == "finished" and WORD in text_of(message.parts)
        assert WORD not in str(on.server.requests[-1].json)


async def test_only_one_conversation_is_redacted_when_one_is_named(with_words: Opened, home: Path) -> None:
    async with with_words() as (on, conversation):
        store = on.engine.store
        fork = await store.tree.fork(conversation.id)
        receipt = await store.erasure.redact(SECRET, conversation=conversation.id)
        assert receipt.conversations == [conversation.id]
        assert WORD not in str(await store.conversations.branch(conversation.id))
        assert word("prompt") in str(await store.conversations.branch(fork.id))


async def test_a_fork_of_a_purged_conversation_stays(with_words: Opened, home: Path) -> None:
    async with with_words() as (on, conversation):
        store = on.engine.store
        fork = await store.tree.fork(conversation.id)
        before = await store.conversations.branch(fork.id)
        await store.erasure.purge([conversation.id])
        assert await store.conversations.branch(fork.id) == before
        large = next(part["output"] for message in before for part in message.parts if "effect" in str(part.get("output", "")))
        assert large
        await on.ask("go on", conversation=fork.id)


async def test_conversation_numbers_are_never_reused(with_words: Opened) -> None:
    async with with_words() as (on, conversation):
        await on.engine.store.erasure.purge([conversation.id])
        assert (await on.engine.store.conversations.create(Conversation("next"))).no > conversation.no


async def test_an_active_run_is_not_purged_or_redacted(stage: Opened) -> None:
    async with stage(lambda _: Reply(text=f"{WORD} and so on", hang_at=20)) as on:
        submitted = await on.submit(f"say {WORD}")
        store = on.engine.store
        with pytest.raises(Busy, match="has an active run"):
            await store.erasure.purge([submitted.conversation.id])
        receipt = await store.erasure.redact(SECRET)
        assert "has" not in receipt.conversations and any("moot chat stop" in words for words in receipt.left)
        await on.engine.runs.cancel(submitted.run.id)
        await on.engine.runs.wait(submitted.run.id)
        await store.erasure.purge([submitted.conversation.id])


async def test_another_process_that_reads_and_writes_is_not_disturbed(with_words: Opened, home: Path) -> None:
    async with with_words() as (on, conversation):
        other = connect(home / "data" / "moot.db")
        other.execute("SELECT count(*) FROM event").fetchone()
        await on.engine.store.erasure.purge([conversation.id])
        assert found_in(home) == []
        assert other.execute("SELECT count(*) FROM conversation").fetchone() == (0,)
        other.close()


async def test_a_purge_waits_for_readers_of_an_old_state(with_words: Opened, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with with_words() as (on, conversation):
        other = connect(home / "data" / "moot.db")
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM event").fetchone()
        erasure = on.engine.store.erasure
        erasure.patience = 0.2
        receipt = await erasure.purge([conversation.id])
        assert receipt.done_at is None and "write-ahead log" in receipt.left[0]
        other.execute("ROLLBACK")
        other.close()
        (finished,) = await erasure.finish()
        assert finished.no == receipt.no and finished.done_at is not None and not finished.left
        assert found_in(home) == []


async def test_tampering_with_redacted_events_is_found(with_words: Opened, home: Path) -> None:
    async with with_words() as (on, _):
        await on.engine.store.erasure.redact(SECRET)
    changed = connect(home / "data" / "moot.db", writing=True)
    row = changed.execute(
        "SELECT id, chunks FROM event WHERE kind = 'tombstone' AND CAST(chunks AS TEXT) LIKE '%redacted%' LIMIT 1"
    ).fetchone()
    changed.execute("UPDATE event SET chunks = ? WHERE id = ?", (row[1].replace(b"redacted", b"rewritten"), row[0]))
    assert "changed" in {damage.kind for damage in (await verify(home)).damages}
    changed.execute("UPDATE event SET chunks = ? WHERE id = ?", row[::-1])
    request = changed.execute("SELECT id, request FROM exchange LIMIT 1").fetchone()
    changed.execute("UPDATE exchange SET request = ? WHERE id = ?", (b'{"pieces":[],"redacted":true}', request[0]))
    assert "record" in {damage.kind for damage in (await verify(home)).damages}
    changed.execute("UPDATE exchange SET request = ? WHERE id = ?", request[::-1])
    changed.close()
    assert not (await verify(home)).damaged
