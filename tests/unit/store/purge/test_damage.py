"""Damaged and missing data can't be searched: redactions and scans report it and continue."""

from __future__ import annotations

import random
import string
import threading

import pytest

from moot.config.settings import Settings
from moot.store import SqliteStore
from moot.store.content.blobs import PACKED
from moot.store.database.transaction import Transaction
from moot.store.maintenance.purge.files import redact_files
from moot.store.maintenance.purge.redactor import Redactor
from moot.types.conversation import Conversation
from moot.types.maintenance import ScanReport, Secret
from moot.types.message import Message, Part, text_part

pytestmark = pytest.mark.anyio

WORD = "topsecretword"


@pytest.fixture
async def damaged(store: SqliteStore) -> SqliteStore:
    """A store with a secret in a damaged message and in a sound one of another conversation."""
    for id in ("a", "b"):
        await store.conversations.create(Conversation(id))
        text = f"{WORD} {random.Random(id).randbytes(600).hex()}"
        await store.conversations.add_message(Message(f"m{id}", "user", (text_part(text),), conversation=id, created_at=1000))
    await store.search.index()  # which compresses the parts

    def damage(transaction: Transaction) -> None:
        parts = bytearray(transaction.row("SELECT parts FROM message WHERE id = 'ma'")[0])
        parts[-1] ^= 0xFF
        transaction.execute("UPDATE message SET parts = ? WHERE id = 'ma'", (bytes(parts),))

    await store._writer.write(damage)
    return store


async def test_a_redaction_reports_what_it_could_not_search(damaged: SqliteStore) -> None:
    (dry, done) = [await damaged.erasure.redact(Secret((WORD,)), dry_run=dry_run) for dry_run in (True, False)]
    for receipt in (dry, done, *await damaged.erasure.receipts()):
        (left,) = receipt.left
        assert left.startswith("the message ma of the conversation a: damaged, so not searched")
    (clean,) = (await damaged.conversations.branch("b"))[0].parts
    assert WORD not in str(clean)
    await damaged.erasure.purge(["a"])
    assert not (await damaged.erasure.redact(Secret((WORD,)))).left


async def test_a_redaction_reports_lost_events(store: SqliteStore) -> None:
    await store.conversations.create(Conversation("a"))
    await store.conversations.add_message(Message("m", "user", (text_part("hello"),), conversation="a", created_at=1000))
    async for _ in store.upkeep.seal():
        pass
    await store._writer.write(lambda transaction: transaction.execute("UPDATE segment SET data = x'00'"))
    (left,) = (await store.erasure.redact(Secret((WORD,)))).left
    assert "in a segment of the conversation a: damaged, so not searched" in left


async def test_a_missing_blob_does_not_end_a_redaction(damaged: SqliteStore, settings: Settings) -> None:
    blob = await damaged.blobs.put(WORD.encode() * PACKED)
    (settings.home / "data" / "blobs" / blob.sha256[:2] / blob.sha256).unlink()
    receipt = await damaged.erasure.redact(Secret((WORD,)))
    assert "b" in receipt.conversations and [blob.sha256 in left for left in receipt.left] == [True, False]


async def scanned(store: SqliteStore) -> ScanReport:
    return [report async for report in store.erasure.scanner.scan()][-1]


async def test_a_scan_lists_what_it_could_not_search_and_continues(damaged: SqliteStore, settings: Settings) -> None:
    token = "ghp_" + "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=36))
    await damaged.conversations.create(Conversation("c", title=f"deploy with {token}"))
    blob = await damaged.blobs.put(b"text " * PACKED)
    (settings.home / "data" / "blobs" / blob.sha256[:2] / blob.sha256).unlink()
    state = settings.home / "state"
    state.mkdir(exist_ok=True)
    (state / "y.log").write_text("x" * 100)
    for _ in range(2):  # a conversation with a problem is scanned again
        report = await scanned(damaged)
        assert len(report.findings) == 1
        assert [problem.split()[1] for problem in report.problems] == ["message", "file"] and blob.sha256 in report.problems[1]
    assert report.unchanged == 1 and report.to_json()["problems"] == report.problems


async def test_each_conversation_that_shares_a_problem_is_scanned_again(store: SqliteStore, settings: Settings) -> None:
    blob = await store.blobs.put(b"text " * PACKED)
    for id in ("a", "b"):
        await store.conversations.create(Conversation(id))
        picture: Part = {"type": "file", "mediaType": "text/plain", "url": f"blob:{blob.sha256}"}
        await store.conversations.add_message(Message(f"m{id}", "user", (picture,), conversation=id, created_at=1000))
    (settings.home / "data" / "blobs" / blob.sha256[:2] / blob.sha256).unlink()
    for _ in range(2):
        report = await scanned(store)
        assert report.unchanged == 0 and len(report.problems) == 1


async def test_files_that_vanish_during_a_scan_or_a_redaction_are_ignored(store: SqliteStore, settings: Settings) -> None:
    state = settings.home / "state"
    state.mkdir(exist_ok=True)
    ended = threading.Event()

    def churn() -> None:
        while not ended.is_set():
            for number in range(200):
                (state / f"{number}.log").write_text("x" * 100)
            for number in range(200):
                (state / f"{number}.log").unlink()

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(30):
            assert not (await scanned(store)).problems
            redact_files(state, Redactor(Secret((WORD,))))
    finally:
        ended.set()
        thread.join()
