"""Private folders of sandboxed commands, also those of processes that were killed."""

import subprocess
import sys
from pathlib import Path

import pytest

from moot.guard.sandbox.scratch import Scratch, delete_abandoned

pytestmark = pytest.mark.anyio

_HOLD = "from moot.guard.sandbox.scratch import Scratch; held = Scratch(); print(held.folder, flush=True); input()"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


async def test_a_folder_is_deleted_with_everything_in_it(folder: Path) -> None:
    scratch = Scratch()
    (scratch.folder / "home" / "deep").mkdir(parents=True)
    (scratch.folder / "home" / "deep" / "file").write_text("x")
    (scratch.folder / "home" / "link").symlink_to(folder)
    (scratch.folder / "home" / "deep").chmod(0o555)
    (scratch.folder / "home").chmod(0o555)
    await scratch.aclose()
    assert [*folder.iterdir()] == []


async def test_folders_of_killed_processes_are_deleted_and_those_of_live_ones_stay(folder: Path) -> None:
    mine = Scratch()
    (folder / "moot-sandbox-link").symlink_to(folder)
    (folder / "moot-other").mkdir()
    with subprocess.Popen([sys.executable, "-c", _HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        theirs = Path(process.stdout.readline().strip())
        (theirs / "tmp").mkdir()
        delete_abandoned()
        assert theirs.is_dir()
        process.kill()
    assert theirs.is_dir(), "it had no chance to delete it"
    await Scratch().aclose()
    assert not theirs.exists()
    assert mine.folder.is_dir()
    assert {path.name for path in folder.iterdir()} == {mine.folder.name, "moot-sandbox-link", "moot-other"}
    await mine.aclose()
