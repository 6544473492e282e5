"""kill -9 during a purge or redaction: at the next start it is complete or not started, and the receipt is correct."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from e2e.conftest import Stage
from e2e.purge.entry_points import WORD, found_in, lived, script
from moot.config.settings import Models, Permissions, Settings
from moot.engine import open_engine
from moot.store import open_store
from moot.store.database.connection import connect
from moot.store.maintenance.backup import restore
from moot.testing.scripted import ScriptedServer
from moot.types.conversation import Conversation
from verification import verify

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

HERE = Path(__file__).parent
SOURCE = HERE.parents[2] / "src" / "moot" / "store" / "maintenance" / "purge"
POINTS = sorted({name for file in SOURCE.glob("*.py") for name in re.findall(r'point\("(forget\.[a-z.-]+)"\)', file.read_text())})
KNOWN = ["forget.begun", "forget.one", "forget.reached", "forget.rows", "forget.scrubbed", "forget.swept", "forget.unnamed"]


@pytest.fixture(scope="module")
async def made(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Path, str]]:
    base = tmp_path_factory.mktemp("made")
    (base / "work").mkdir()
    async with ScriptedServer(script) as server:
        chosen = Settings(
            base / "home",
            models=Models(main="scripted@mine"),
            providers={"mine": server.provider("mine", "openai-chat")},
            permissions=Permissions(mode="auto"),
        )
        async with open_engine(chosen, seed=1) as engine:
            conversation = await lived(Stage(engine, server, base / "work"), base / "home" / "state")
            await engine.store.erasure.backups.back_up(base / "a.backup")
    yield base / "home", conversation.id


def copied(home: Path, folder: Path) -> Path:
    """The home with its backup, whose location it knows."""
    shutil.copytree(home, folder / "home")
    shutil.copy(home.parent / "a.backup", folder)
    database = connect(folder / "home" / "data" / "moot.db", writing=True)
    database.execute("UPDATE written_file SET path = ?", (bytes(folder / "a.backup"),))
    database.close()
    return folder / "home"


def killed(home: Path, *arguments: str, crash_at: str) -> None:
    """A process that dies at this point."""
    environment = {"PATH": "/usr/bin:/bin", "MOOT_TESTING": "1", "MOOT_CRASH_AT": crash_at}
    done = subprocess.run(
        [sys.executable, str(HERE / "purge_process.py"), str(home), *arguments], capture_output=True, env=environment, timeout=60
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def test_every_crash_point_is_tested() -> None:
    assert POINTS == KNOWN


@pytest.mark.parametrize(
    ("what", "crash_at"),
    [*(("purge", name) for name in (*POINTS, "store.before-commit:1")), ("redact", "store.after-commit:3"), ("redact", "forget.unnamed")],
)
async def test_an_interrupted_purge_is_finished_or_not_started(made: tuple[Path, str], tmp_path: Path, what: str, crash_at: str) -> None:
    home, id = copied(made[0], tmp_path), made[1]
    killed(home, what, id if what == "purge" else WORD, crash_at=crash_at)
    store = await open_store(Settings(home))
    cut = await store.erasure.receipts()
    there = id in {one.id for one in (await store.conversations.list(deleted=True)).items + (await store.conversations.list()).items}
    await store.close()
    if crash_at == "store.before-commit:1":
        assert not cut and there and len(found_in(home)) >= 4
        return
    (receipt,) = cut
    assert receipt.done_at is None
    if what == "purge":
        assert (receipt.conversations == [id]) is not there, "the receipt says what is not so"
    store = await open_store(Settings(home))
    (last,) = await store.erasure.finish()
    assert await store.erasure.finish() == []
    await store.close()
    assert last.no == receipt.no and last.done_at is not None and last.conversations == [id] and not last.left
    assert found_in(home) == []
    assert not (await verify(home)).damaged
    backup = tmp_path / "a.backup"
    assert {Path(file.path).name: file.what for file in last.files}[backup.name] == "rewritten"
    restore(backup, tmp_path / "again")
    assert found_in(tmp_path / "again") == [] and sorted(path.name for path in tmp_path.iterdir()) == ["a.backup", "again", "home"]


async def test_content_added_during_a_redaction_is_redacted_too(made: tuple[Path, str], tmp_path: Path) -> None:
    home = copied(made[0], tmp_path)
    killed(home, "redact", WORD, crash_at="forget.begun")
    store = await open_store(Settings(home))
    fork = await store.tree.fork(made[1])
    upload = await store.blobs.upload(WORD.encode() * 100, "text/plain")
    await store.conversations.create(Conversation("new", title=f"{WORD} {upload.sha256}"))
    (receipt,) = await store.erasure.finish()
    assert {fork.id, "new", made[1]} == set(receipt.conversations) and not receipt.left
    await store.close()
    assert found_in(home) == []
    assert not (await verify(home)).damaged
