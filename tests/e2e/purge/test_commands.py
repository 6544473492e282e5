"""`moot purge` and `moot redact` for users and scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cli_process import MootProcess, make
from e2e.pty_screen import PtyScreen
from moot.config.settings import Settings
from moot.store import open_store
from moot.types.conversation import Conversation
from moot.types.message import Message, text_part

pytestmark = pytest.mark.anyio

DAY = 86_400_000


@pytest.fixture
def moot(tmp_path: Path) -> Iterator[MootProcess]:
    process = make(tmp_path)
    yield process
    process.close()


async def filled(home: Path) -> None:
    store = await open_store(Settings(home))
    for name in ("alpha", "beta"):
        await store.conversations.create(Conversation(f"{name}-1", title=name))
        await store.conversations.add_message(Message(f"{name}-m", "user", (text_part(f"{name} hummingbird"),), conversation=f"{name}-1"))
    await store.conversations.delete("beta-1")
    await store.close()


@pytest.mark.slow
async def test_a_purge_needs_confirmation_and_prints_a_receipt(moot: MootProcess) -> None:
    await filled(moot.home)
    refused = moot.run("purge", "alpha")
    assert refused.returncode == 2 and b"--yes" in refused.stderr
    looked = moot.run("purge", "--deleted", "--dry-run", "--json")
    assert json.loads(looked.stdout)["conversations"] == ["beta-1"]
    done = json.loads(moot.run("purge", "--deleted", "--yes", "--json").stdout)
    assert done["conversations"] == ["beta-1"] and done["done_at"] and done["rows"]["message"] == 1 and not done["left"]
    assert b"purge" in moot.run("purge", "--receipts").stdout


@pytest.mark.slow
async def test_secrets_are_read_from_stdin_and_arguments_warn(moot: MootProcess) -> None:
    await filled(moot.home)
    looked = moot.run("redact", "--dry-run", "--json", stdin=b"hummingbird\n")
    found = json.loads(looked.stdout)
    assert found["dry_run"] is True and set(found["conversations"]) == {"alpha-1", "beta-1"} and b"history" not in looked.stderr
    assert b"not checked   base64 in base64" in moot.run("redact", "--dry-run", stdin=b"hummingbird\n").stdout
    done = moot.run("redact", "hummingbird", "--yes", "--json")
    assert b"shell's history" in done.stderr and json.loads(done.stdout)["done_at"] and json.loads(done.stdout)["not_looked_into"]
    assert b"[redacted]" in moot.run("chat", "show", "alpha").stdout
    assert moot.run("redact", "--yes", stdin=b"").returncode == 2


async def test_on_a_terminal_the_command_asks_and_no_cancels(moot: MootProcess) -> None:
    await filled(moot.home)
    screen = PtyScreen(moot, "purge", "alpha")
    screen.wait_for("This cannot be undone")
    screen.send("n\r")
    assert screen.wait_exit() == 1
    screen = PtyScreen(moot, "purge", "alpha")
    screen.wait_for("This cannot be undone")
    screen.send("y\r")
    screen.wait_for("rewritten")
    assert screen.wait_exit() == 0


async def test_only_expired_conversations_are_deleted(moot: MootProcess) -> None:
    (moot.home / "config.yaml").write_text("retention: {trash_days: 30, projects: {default: {keep_days: 10}}}\n")
    store = await open_store(Settings(moot.home))
    now = store._clock.now() // 1000
    for name, age in (("new", 0), ("quiet", 11), ("trash", 0), ("old-trash", 0)):
        await store.conversations.create(Conversation(name, title=name, created_at=now - age * DAY))

    def backdate(transaction: object) -> None:
        transaction.execute("UPDATE conversation SET deleted_at = ? WHERE id = 'trash'", (now - 29 * DAY,))  # type: ignore[attr-defined]
        transaction.execute("UPDATE conversation SET deleted_at = ? WHERE id = 'old-trash'", (now - 31 * DAY,))  # type: ignore[attr-defined]

    await store._writer.write(backdate)
    await store.close()
    said = json.loads(moot.run("purge", "--expired", "--dry-run", "--json").stdout)["data"]
    assert {(one["conversation"], one["what"]) for one in said} == {("quiet", "delete"), ("old-trash", "purge")}
    assert moot.run("purge", "--expired", "--yes").returncode == 0
    store = await open_store(Settings(moot.home))
    assert {one.id for one in (await store.conversations.list()).items} == {"new"}
    assert {one.id for one in (await store.conversations.list(deleted=True)).items} == {"quiet", "trash"}
    await store.close()
