"""Backups of a home in use, homes restored from them, and the effects of a purge or redaction on them."""

from __future__ import annotations

import gzip
import json
import shutil
import signal
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import zstandard

from e2e.cli_process import MootProcess, make
from e2e.conftest import Stage
from e2e.purge.entry_points import WORD, found_in, lived, script
from moot.config.plugins.installed import installed_plugin
from moot.config.settings import Settings
from moot.errors import Busy, MootError, StoreCorrupt, StoreTooNew, UsageError
from moot.skills.plugins import install, read_plugin_source
from moot.store import open_store
from moot.store.database.connection import connect
from moot.store.database.locks import FORGETTING, FileLock
from moot.store.maintenance.backup import read, restore
from moot.store.maintenance.backup.archive import _is_name
from moot.store.maintenance.backup.creation import write
from moot.types.conversation import Conversation
from moot.types.maintenance import Secret
from verification import verify

SCHEMAS = Path(__file__).parents[2] / "recorded" / "schemas"
OLDER = 18
"""An earlier schema, whose recorded database has all blobs inside."""
pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CONFIG = "providers: {mine: {dialect: openai-chat, base_url: 'http://127.0.0.1:9/v1', api_key: sk-very-secret-key}} # mine\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk"


@pytest.fixture
def with_words(stage: Callable[..., Any], home: Path) -> Callable[..., Any]:
    @asynccontextmanager
    async def opened(**more: Any) -> AsyncIterator[tuple[Stage, Conversation]]:
        async with stage(script, **more) as on:
            (home / "config.yaml").write_text(CONFIG)
            (home / "agents").mkdir()
            (home / "agents" / "me.md").write_text("an agent")
            yield on, await lived(on, home / "state")

    return opened


async def test_a_home_is_restored_under_another_path(with_words: Any, home: Path, disk: Path, tmp_path: Path, repository: Path) -> None:
    async with with_words() as (on, conversation):
        install(home, await read_plugin_source(str(repository / "examples/marketplace"), home, tmp_path, plugin="house-style"))
        made = await on.engine.store.erasure.backups.back_up(disk)
        branch = await on.engine.store.conversations.branch(conversation.id)
        log = await on.engine.store.log.read(conversation.id, limit=1000)
        assert stat.S_IMODE(Path(made.path).stat().st_mode) == 0o600
        assert [path.name for path in disk.iterdir()] == [Path(made.path).name]
        assert read(Path(made.path)) == made
    other = tmp_path / "elsewhere" / "another"
    found, aside = restore(Path(made.path), other)
    assert (found, aside) == (made, None)
    store = await open_store(Settings(other))
    assert await store.conversations.branch(conversation.id) == branch
    assert await store.log.read(conversation.id, limit=1000) == log
    await store.close()
    assert (other / "agents" / "me.md").read_text() == "an agent"
    plugin = installed_plugin(other, "house-style")
    assert plugin.status == "enabled" and plugin.plugin is not None
    assert (plugin.plugin.folder / "hooks/guard.sh").stat().st_mode & 0o100
    assert json.loads((other / "state" / "history.jsonl").read_text().splitlines()[-1]) == "an innocent line"
    assert stat.S_IMODE(other.stat().st_mode) == 0o700
    assert not (await verify(other)).damaged


async def test_api_keys_are_backed_up_only_on_request(with_words: Any, disk: Path, tmp_path: Path) -> None:
    async with with_words() as (on, _):
        without = await on.engine.store.erasure.backups.back_up(disk / "without")
        full = await on.engine.store.erasure.backups.back_up(disk / "full", secrets=True)
    restore(Path(without.path), tmp_path / "a")
    restore(Path(full.path), tmp_path / "b")
    masked = (tmp_path / "a" / "config.yaml").read_text()
    assert "secret-key" not in masked and "127.0.0.1:9" in masked and "# mine" in masked
    assert (tmp_path / "b" / "config.yaml").read_text() == CONFIG
    assert (without.has_secrets, full.has_secrets) == (False, True)


async def test_a_nonempty_home_is_replaced_only_on_request(with_words: Any, home: Path, disk: Path, tmp_path: Path) -> None:
    async with with_words() as (on, conversation):
        made = await on.engine.store.erasure.backups.back_up(disk)
        with pytest.raises(Busy, match="in use"):
            restore(Path(made.path), home, replace=True)
        await on.engine.store.conversations.rename(conversation.id, "later", "user")
    with pytest.raises(UsageError, match="not empty"):
        restore(Path(made.path), home)
    _, aside = restore(Path(made.path), home, replace=True)
    titles: list[str] = []
    for place in (home, aside):
        assert place is not None
        store = await open_store(Settings(place))
        titles.append((await store.conversations.get(conversation.id)).title)
        await store.close()
    assert titles == [f"{WORD}-title", "later"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


async def test_truncated_or_changed_backups_are_refused(with_words: Any, disk: Path, tmp_path: Path) -> None:
    async with with_words() as (on, _):
        made = await on.engine.store.erasure.backups.back_up(disk)
    data = Path(made.path).read_bytes()
    broken = tmp_path / "broken"
    sizes = [0, 1, 10, len(data) // 3, len(data) // 2, len(data) - 1000, len(data) - 5]
    cases = [data[:size] for size in sizes]
    cases += [data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :] for at in range(5, len(data), len(data) // 15)]
    cases += [b"PK\x03\x04 no backup", zstandard.compress(b"no tar" * 1000)]
    for case in cases:
        broken.write_bytes(case)
        with pytest.raises(MootError):
            read(broken)
        with pytest.raises(MootError):
            restore(broken, tmp_path / "new")
        assert not (tmp_path / "new").exists()


async def test_member_names_outside_the_home_are_refused(tmp_path: Path) -> None:
    for name in ("../evil", "/evil", "state/../../evil", "agents/../config", "moot.db-wal", "state/owners/x", "blobs/aa/../b"):
        assert not _is_name(name)
    assert _is_name("agents/a/b.md") and _is_name(f"blobs/ab/ab{'0' * 62}")


async def test_a_backup_of_an_older_moot_is_migrated_and_one_of_a_newer_is_refused(
    with_words: Any, home: Path, disk: Path, tmp_path: Path
) -> None:
    async with with_words() as (on, _):
        store = on.engine.store
        made = await store.erasure.backups.back_up(disk)
    database = connect(home / "data" / "moot.db", writing=True)
    version = database.execute("PRAGMA user_version").fetchone()[0]
    database.execute(f"PRAGMA user_version = {version + 1}")
    database.close()
    newer = write(home / "data" / "moot.db", disk / "newer", 1, secrets=False, tell=lambda _: None)
    database = connect(home / "data" / "moot.db", writing=True)
    database.execute(f"PRAGMA user_version = {version}")
    database.close()
    of_then = tmp_path / "then" / "data" / "moot.db"
    of_then.parent.mkdir(parents=True)
    of_then.write_bytes(gzip.decompress((SCHEMAS / f"{OLDER}.db.gz").read_bytes()))
    older = write(of_then, disk / "older", 1, secrets=False, tell=lambda _: None)
    with pytest.raises(StoreTooNew, match="newer version of moot"):
        restore(Path(newer.path), tmp_path / "new")
    assert not (tmp_path / "new").exists()
    restore(Path(older.path), tmp_path / "new")
    opened = await open_store(Settings(tmp_path / "new"))
    assert (await opened.conversations.list()).items
    await opened.close()
    assert made.schema == version and older.schema == OLDER


@pytest.mark.parametrize("what", ["purge", "redact"])
async def test_known_backups_are_rewritten(with_words: Any, home: Path, disk: Path, tmp_path: Path, what: str) -> None:
    async with with_words() as (on, conversation):
        store = on.engine.store
        other = await store.conversations.create(Conversation("another", title="stays"))
        old = home / "data" / "backups"
        old.mkdir()
        (old / "moot-schema7-then.db").write_bytes(f"before {WORD}".encode())
        kept = await store.erasure.backups.back_up(disk / "kept")
        gone = await store.erasure.backups.back_up(disk / "gone")
        Path(gone.path).unlink()
        receipt = await (store.erasure.purge([conversation.id]) if what == "purge" else store.erasure.redact(Secret((WORD,))))
        assert receipt.done_at is not None
        fates = {Path(file.path).name: file.what for file in receipt.files}
        assert fates["kept"] == "rewritten" and fates["gone"] == "not reached" and fates["moot-schema7-then.db"] == "deleted"
        assert found_in(home) == []
    restore(Path(kept.path), tmp_path / "again")
    assert found_in(tmp_path / "again") == []
    opened = await open_store(Settings(tmp_path / "again"))
    there = {one.id for one in (await opened.conversations.list()).items}
    await opened.close()
    assert there == ({other.id} if what == "purge" else {other.id, conversation.id})
    assert read(Path(kept.path)).made_at == kept.made_at
    assert sorted(path.name for path in disk.iterdir()) == ["kept"]


async def test_a_backup_that_is_older_than_a_conversation_is_left_alone(with_words: Any, home: Path, disk: Path) -> None:
    async with with_words() as (on, _):
        store = on.engine.store
        made = await store.erasure.backups.back_up(disk)
        before = Path(made.path).read_bytes()
        later = await store.conversations.create(Conversation("later", created_at=made.made_at + 1))
        receipt = await store.erasure.purge([later.id])
        assert not receipt.files and Path(made.path).read_bytes() == before


async def test_backups_are_refused_during_a_purge(with_words: Any, disk: Path, home: Path) -> None:
    async with with_words() as (on, conversation):
        with FileLock(home / "state" / FORGETTING):
            with pytest.raises(Busy, match="backing up"):
                await on.engine.store.erasure.backups.back_up(disk)
            with pytest.raises(Busy, match="backing up"):
                await on.engine.store.erasure.purge([conversation.id])
        assert not list(disk.iterdir())


@pytest.mark.parametrize("crash_at", ["", "backup.copied", "restore.unpacked", "restore.exchanged"])
async def test_a_kill_leaves_the_old_or_the_new_home(moot_at: Callable[..., MootProcess], tmp_path: Path, crash_at: str) -> None:
    moot = moot_at()
    assert moot.run("config", "check").returncode == 0
    store = await open_store(Settings(moot.home))
    await store.conversations.create(Conversation("first", title="first"))
    moot.more |= {"MOOT_TESTING": "1", "MOOT_CRASH_AT": crash_at}
    file = tmp_path / "a.backup"
    done = moot.run("backup", str(file), "--json")
    if crash_at == "backup.copied":
        assert done.returncode == -signal.SIGKILL and not file.exists()
        moot.more |= {"MOOT_CRASH_AT": ""}
        done = moot.run("backup", str(file), "--json")
        assert [path.name for path in tmp_path.iterdir() if "moot-" in path.name] == []
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["files"] >= 2
    await store.conversations.create(Conversation("second", title="second"))
    await store.close()
    moot.more |= {"MOOT_CRASH_AT": crash_at if crash_at.startswith("restore") else ""}
    done = moot.run("restore", str(file), "--replace", "--json")
    expected = {"first", "second"} if crash_at == "restore.unpacked" else {"first"}
    assert (done.returncode == -signal.SIGKILL) is crash_at.startswith("restore"), done.stderr
    store = await open_store(Settings(moot.home))
    assert {one.id for one in (await store.conversations.list()).items} == expected
    await store.close()


async def test_a_purge_reaches_a_backup_of_a_killed_writer(moot_at: Callable[..., MootProcess], tmp_path: Path) -> None:
    moot, file = moot_at(), tmp_path / "a.backup"
    assert moot.run("config", "check").returncode == 0
    store = await open_store(Settings(moot.home))
    await store.conversations.create(Conversation("first"))
    moot.more |= {"MOOT_TESTING": "1", "MOOT_CRASH_AT": "backup.written"}
    assert moot.run("backup", str(file)).returncode == -signal.SIGKILL and file.exists()
    receipt = await store.erasure.purge(["first"])
    await store.close()
    assert {fate.path: fate.what for fate in receipt.files} == {str(file): "rewritten"}


async def test_imported_conversations_are_purged_from_every_backup(tmp_path: Path) -> None:
    store = await open_store(Settings(tmp_path / "home"))
    origin = {"format": "x", "source_id": "y"}
    await store.conversations.create(Conversation("later", created_at=1 << 45, origin=origin))  # by the clock of its origin
    made = await store.erasure.backups.back_up(tmp_path / "a.backup")
    receipt = await store.erasure.purge(["later"])
    await store.close()
    assert {fate.path: fate.what for fate in receipt.files} == {made.path: "rewritten"}


@pytest.fixture
def moot_at(tmp_path: Path) -> Any:
    made: list[MootProcess] = []

    def opened() -> MootProcess:
        made.append(make(tmp_path))
        return made[-1]

    yield opened
    for process in made:
        process.close()


@pytest.mark.parametrize("table", ["conversation", "message", "event"])  # an index is rebuilt in the copy
async def test_a_broken_database_is_not_backed_up(with_words: Any, home: Path, disk: Path, table: str) -> None:
    async with with_words():
        pass
    copied = shutil.copytree(home, disk / "home")
    database = copied / "data" / "moot.db"
    connection = connect(database)
    [(page,)] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,))
    [(size,)] = connection.execute("PRAGMA page_size")
    connection.close()
    with database.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    with pytest.raises(StoreCorrupt):
        write(database, disk / "b", 1, secrets=False, tell=lambda _: None)
    assert not (disk / "b").exists()
    shutil.rmtree(copied)
