"""Backups of strangers or of a newer version of moot, and unwritable places: a clear error, and nothing half-written."""

from __future__ import annotations

import io
import json
import os
import resource
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import zstandard

from moot.config.settings import Settings
from moot.errors import MootError, StoreCorrupt, StoreError, UsageError
from moot.store import open_store
from moot.store.maintenance.backup import read, restore
from moot.store.maintenance.backup.restoration import _locked
from moot.types.conversation import Conversation

pytestmark = pytest.mark.anyio
NOBODY = 65534
Add = Callable[[tarfile.TarFile], None]


@pytest.fixture
async def good(tmp_path: Path) -> Path:
    store = await open_store(Settings(tmp_path / "home"))
    await store.conversations.create(Conversation("c", title="kept"))
    await store._writer.write(lambda transaction: transaction.execute("CREATE TABLE large (data BLOB)"))
    await store._writer.write(lambda transaction: transaction.execute("INSERT INTO large VALUES (zeroblob(1000000))"))
    made = await store.erasure.backups.back_up(tmp_path / "good.backup")
    await store.close()
    return Path(made.path)


def packed(path: Path, *adds: Add, manifest: bytes = b'{"moot_backup": 1, "made_at": 1, "moot": "1", "schema": 1, "files": {}}') -> Path:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for add in [*adds, member("manifest.json", manifest)]:
            add(archive)
    path.write_bytes(zstandard.compress(plain.getvalue()))
    return path


def member(name: str, data: bytes = b"x", **more: object) -> Add:
    def add(archive: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        for field, value in more.items():
            setattr(info, field, value)
        archive.addfile(info, io.BytesIO(data))

    return add


def there(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


STRANGE = {
    "a link": member("agents/a", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
    "a hard link": member("agents/a", b"", type=tarfile.LNKTYPE, linkname="moot.db"),
    "a device": member("agents/a", b"", type=tarfile.CHRTYPE, devmajor=1, devminor=3),
    "a pipe": member("agents/a", b"", type=tarfile.FIFOTYPE),
    "a folder": member("agents/a", b"", type=tarfile.DIRTYPE),
    "an absolute name": member("/tmp/evil-of-a-backup"),
    "a name that leads out": member("agents/../../../evil-of-a-backup"),
    "a name with a line in it": member("agents/a\nb"),
    "a file that says that it has holes": member("agents/a", pax_headers={"GNU.sparse.size": "9999999999", "GNU.sparse.map": "0,1"}),
    "a place that nobody may fill": member("state/writers.lock"),
    "the same name twice": lambda archive: [member("agents/a")(archive) for _ in range(2)] and None,
}


@pytest.mark.parametrize("what", STRANGE)
async def test_unexpected_members_are_refused(tmp_path: Path, what: str) -> None:
    backup = packed(tmp_path / "strange", STRANGE[what])
    with pytest.raises(StoreCorrupt, match=r"not a complete backup: .*(does not belong in it|is not a file)"):
        restore(backup, tmp_path / "new")
    with pytest.raises(StoreCorrupt):
        read(backup)
    assert there(tmp_path) == ["strange"] and not Path("/tmp/evil-of-a-backup").exists()


async def test_the_size_of_tar_headers_is_limited(tmp_path: Path) -> None:
    backup = packed(tmp_path / "strange", member("agents/a", pax_headers={"comment": "x" * 3_000_000}))
    with pytest.raises(StoreCorrupt, match="header of 3,0"):
        restore(backup, tmp_path / "new")
    assert there(tmp_path) == ["strange"]


async def test_conflicting_member_names_are_reported(tmp_path: Path) -> None:
    backup = packed(tmp_path / "strange", member("agents/a"), member("agents/a/b"))
    with pytest.raises(StoreError, match="Cannot unpack 'agents/a/b'"):
        restore(backup, tmp_path / "new")
    assert there(tmp_path) == ["strange"]


async def test_a_backup_of_a_newer_moot_is_recognized(tmp_path: Path) -> None:
    newer = json.dumps({"moot_backup": 2, "files": {}}).encode()
    backup = packed(tmp_path / "newer", member("vectors/0001.bin"), member("more", b"", type=tarfile.SYMTYPE, linkname="x"), manifest=newer)
    with pytest.raises(UsageError, match="written by a newer version of moot"):
        restore(backup, tmp_path / "new")
    assert there(tmp_path) == ["newer"]


async def test_a_restored_home_registers_its_backup(good: Path, tmp_path: Path) -> None:
    restore(good, tmp_path / "again")
    store = await open_store(Settings(tmp_path / "again"))
    receipt = await store.erasure.purge(["c"])
    await store.close()
    assert {file.path: file.what for file in receipt.files} == {str(good): "rewritten"}


async def test_a_full_disk_is_reported_and_leaves_nothing(good: Path, tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, before[1]))
    try:
        with pytest.raises(StoreError, match=r"Cannot unpack 'moot\.db' into .*: File too large"):
            restore(good, tmp_path / "new")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert there(tmp_path) == ["good.backup", "home"]


async def test_a_failed_backup_is_unregistered(good: Path, tmp_path: Path) -> None:
    store = await open_store(Settings(tmp_path / "home"))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, before[1]))
    try:
        with pytest.raises(MootError):
            await store.erasure.backups.back_up(tmp_path / "more.backup")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    receipt = await store.erasure.purge(["c"])
    await store.close()
    assert [file.path for file in receipt.files] == [str(good)]


@contextmanager
def as_nobody() -> Generator[None]:
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everyone may enter and only root may write to."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
async def test_another_user_can_restore_only_into_a_writable_home(good: Path, open_folder: Path) -> None:
    backup = Path(shutil.copy(good, open_folder / "a.backup"))
    (open_folder / "his").mkdir()
    os.chown(open_folder / "his", NOBODY, NOBODY)
    (open_folder / "locked").mkdir(mode=0o700)
    with as_nobody(), pytest.raises(UsageError, match=r"Cannot read .*: Permission denied"):
        restore(backup, open_folder / "his" / "home")
    backup.chmod(0o644)
    for place in ("home", "locked", "locked/home"):
        with as_nobody(), pytest.raises(StoreError, match=r"Cannot restore into .*Permission denied"):
            restore(backup, open_folder / place)
    with as_nobody():
        restore(backup, open_folder / "his" / "home")
    assert there(open_folder) == ["a.backup", "his", "locked"] and there(open_folder / "his") == ["home"]
    assert not there(open_folder / "locked")
    assert {path.stat().st_uid for path in (open_folder / "his" / "home").rglob("*")} == {NOBODY}
    with as_nobody():
        store = await open_store(Settings(open_folder / "his" / "home"))
        assert [one.title for one in (await store.conversations.list()).items] == ["kept"]
        await store.close()


async def test_a_file_at_the_path_of_the_home_is_reported(good: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match="Not a directory"):
        restore(good, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


async def test_the_folder_of_a_concurrent_restore_is_not_deleted(good: Path, tmp_path: Path) -> None:
    other, dead = tmp_path / ".new.restoring-other", tmp_path / ".new.restoring-dead"
    other.mkdir()
    dead.mkdir()
    held = _locked(other)
    assert held is not None and _locked(other) is None
    restore(good, tmp_path / "new")
    os.close(held)
    assert other.exists() and not dead.exists() and (tmp_path / "new" / "data" / "moot.db").exists()
