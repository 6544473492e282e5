from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from moot.cli.commands.maintenance.doctor import clock, processes
from moot.config.settings import Settings
from moot.engine.locks import Owner


def test_a_clock_behind_existing_files_is_reported(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    assert clock(settings).state == "ok"
    assert clock(settings, now=86_400.0).state == "broken"
    settings.database.parent.mkdir()
    settings.database.touch()
    os.utime(settings.database, (time.time() + 3 * 86_400,) * 2)
    assert "the database was written later" in clock(settings).detail


def test_processes_are_found_by_their_locks(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    assert processes(settings).detail == "none"
    owner = Owner(settings.owners, "a")
    assert not settings.owners.exists()  # a process that only reads leaves nothing
    assert owner.hold() == "a"
    (settings.owners / "b.lock").write_text('{"pid": 1, "host": "elsewhere"}')
    assert processes(settings).detail.startswith(f"process {os.getpid()} on ")
    assert "1 stale lock" in processes(settings).detail
    owner.close()
    assert (settings.owners / "b.lock").exists()


@pytest.mark.parametrize("seconds", [0.0, 3600.0])
def test_small_clock_differences_are_ignored(tmp_path: Path, seconds: float) -> None:
    assert clock(Settings(tmp_path), now=time.time() - seconds).state == "ok"
