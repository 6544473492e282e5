"""One SQLite library per process, no other access to its files, and the handling of a library with the WAL-reset bug."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moot.config.settings import Settings
from moot.store import SqliteStore
from moot.store.database import connection
from moot.store.database.locks import FileLock
from moot.store.database.schema import prepare
from moot.store.sqlite import SqliteStore as Opened
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import SystemClock

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parents[3] / "src" / "moot"
LIBRARIES = {"sqlite3", "pysqlite3", "apsw", "aiosqlite"}
TOUCHING = {"open", "read_bytes", "read_text", "write_bytes", "write_text", "copy", "copy2", "copyfile", "copyfileobj", "move", "copytree"}


@pytest.mark.parametrize(
    ("version", "bad"),
    [((3, 6, 23), False), ((3, 7, 0), True), ((3, 40, 1), True), ((3, 51, 2), True), ((3, 51, 3), False), ((3, 53, 4), False)],
)
def test_versions_with_the_bug_are_known(version: tuple[int, ...], bad: bool) -> None:
    assert connection.has_wal_reset_bug(version) is bad


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def touching_the_database(tree: ast.AST) -> Iterator[str]:
    """Return calls that open a file whose expression mentions the database."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
        owner = ast.unparse(function.value) if isinstance(function, ast.Attribute) else ""
        told = " ".join([owner, *(ast.unparse(argument) for argument in node.args)])
        if name in TOUCHING and re.search(r"\bdatabase\b|moot\.db|-wal|-shm|\bstore\.path\b|\b_?db\b", told):
            yield ast.unparse(node)


def test_one_file_imports_a_library() -> None:
    importers = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if LIBRARIES & {name.partition(".")[0] for name in imports(ast.parse(path.read_text(encoding="utf-8")))}
    }
    assert importers == {
        "store/database/connection.py",
        "formats/kit/database.py",
    }  # the latter reads private copies of other programs' files


def test_the_database_file_is_opened_only_by_sqlite() -> None:
    found = {
        str(path.relative_to(SOURCE)): calls
        for path in SOURCE.rglob("*.py")
        if (calls := list(touching_the_database(ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert found == {}


@pytest.mark.parametrize(
    "planted",
    [
        "settings.database.read_bytes()",
        "open(home / 'data' / 'moot.db')",
        "shutil.copy(store.path, x)",
        "Path(f'{database}-wal').open('rb')",
    ],
)
def test_the_check_finds_planted_violations(planted: str) -> None:
    assert list(touching_the_database(ast.parse(planted)))


def test_the_stores_own_files_touch_only_locks_folders_and_blobs() -> None:
    calls = {
        f"{path.name}: {ast.unparse(node.func)}"
        for path in (SOURCE / "store").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) in TOUCHING
    }
    assert calls == {
        "files.py: os.open",  # text files of the home, for a redaction
        "files.py: path.read_bytes",
        "scanner.py: path.read_bytes",  # text files of the home, for a scan
        "mirrors.py: file.read_bytes",  # copies of the files of other machines
        "mirrors.py: (mirror / _PURGED).read_bytes",  # the list of purged files of other machines
        "archive.py: path.open",  # backups, whose database SQLite has copied
        "archive.py: tarfile.open",
        "restoration.py: os.open",
        "restoration.py: path.open",
        "vacuum.py: Path('/proc/meminfo').read_text",
        "creation.py: config.read_bytes",
        "creation.py: history.read_bytes",
        "creation.py: path.read_bytes",
        "creation.py: source.path.open",
        "creation.py: tarfile.open",
        "creation.py: to.open",
        "blobs.py: path.open",
        "blobs.py: self._path.open",
        "errors.py: os.open",  # the null device, to check for free file descriptors
        "errors.py: probe.open",
        "locks.py: os.open",
        "migrations/__init__.py: file.read_text".rpartition("/")[2],
        "__init__.py: (Path(__file__).parent / 'newest.sql').read_text",  # of the migrations too
        "frames.py: path.read_bytes",
    }


def test_closing_any_handle_on_the_file_would_drop_the_locks(tmp_path: Path) -> None:
    """The reason for these rules: closing any file handle outside SQLite drops the lock of a transaction."""
    path = tmp_path / "data" / "moot.db"
    prepare(path, FileLock(tmp_path / "lock"))
    script = f"""
import sys
from moot.store.database.connection import connect
from pathlib import Path
connection = connect(Path({str(path)!r}), writing=True, wait=0.01)
connection.execute("PRAGMA journal_mode = DELETE")
connection.execute("BEGIN EXCLUSIVE")
if sys.argv[1] == "beside":
    open({str(path)!r}, "rb").close()
print("held", flush=True)
sys.stdin.readline()
"""
    for how, refused in (("alone", True), ("beside", False)):
        holder = subprocess.Popen([sys.executable, "-c", script, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        other = connection.sqlite.connect(str(path), timeout=0.01, isolation_level=None)
        try:
            if refused:
                with pytest.raises(connection.sqlite.OperationalError, match="locked"):
                    other.execute("BEGIN EXCLUSIVE")
            else:
                other.execute("BEGIN EXCLUSIVE")
        finally:
            other.close()
            holder.communicate(b"\n")


def protected(settings: Settings) -> Opened:
    prepare(settings.database, FileLock(settings.home / "state" / "migrate.lock"))
    return Opened(settings.database, settings.home / "state", durability="normal", clock=SystemClock(), protected=True)


@pytest.mark.anyio
async def test_a_protected_store_commits_only_under_the_lock(settings: Settings) -> None:
    store = protected(settings)
    await store.conversations.create(Conversation("a"))
    lock = FileLock(settings.home / "state" / "commit.lock")
    assert lock.take(wait=False)
    append = asyncio.create_task(store.log.append("a", [Event("meta")]))
    await asyncio.sleep(0.1)
    assert not append.done()
    lock.release()
    assert await append == range(1, 2)
    assert lock.take(wait=False)
    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0.1)
    assert not closing.done()
    lock.release()
    await closing


@pytest.mark.anyio
async def test_a_protected_store_checkpoints_by_itself_under_the_lock(settings: Settings) -> None:
    store = protected(settings)
    await store.conversations.create(Conversation("a"))
    said: list[str] = []
    store._writer._connection.set_trace_callback(said.append)  # type: ignore[union-attr]
    assert (await store._writer.write(lambda transaction: transaction.row("PRAGMA wal_autocheckpoint"))) == (0,)
    for number in range(140):
        await store.log.append("a", [Event("meta", body=number)])
    checkpoints = [index for index, text in enumerate(said) if "wal_checkpoint" in text]
    assert len(checkpoints) == 2
    assert all(said[index - 1] == "COMMIT" for index in checkpoints)
    assert "one process" in str((await store.health())["protection"])
    await store.close()


@pytest.mark.anyio
async def test_an_unaffected_store_takes_no_lock(store: SqliteStore, settings: Settings) -> None:
    if connection.has_wal_reset_bug(connection.VERSION):
        pytest.skip("this machine's library has the bug")
    lock = FileLock(settings.home / "state" / "commit.lock")
    assert lock.take(wait=False)
    await store.conversations.create(Conversation("a"))
    lock.release()


def test_without_the_fixed_build_the_system_library_is_used_and_reported(tmp_path: Path) -> None:
    script = """
import sys; sys.modules["pysqlite3"] = None
import asyncio, sqlite3
from pathlib import Path
from moot.config.settings import Settings
import moot.store.database.connection as library
from moot.store import open_store
from moot.types.conversation import Conversation
from moot.types.event import Event

async def main():
    store = await open_store(Settings(home=Path(sys.argv[1])))
    await store.conversations.create(Conversation("a"))
    await store.log.append("a", [Event("meta", body=n) for n in range(10)])
    health = await store.health()
    assert health["library"] == "sqlite3" and health["version"] == sqlite3.sqlite_version, health
    assert (health["protection"] != "not needed") == library.has_wal_reset_bug(sqlite3.sqlite_version_info), health
    assert (await store.search.search("nothing")).hits == ()
    await store.close()

asyncio.run(main())
"""
    ran = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False, env=dict(os.environ))
    assert ran.returncode == 0, ran.stderr
