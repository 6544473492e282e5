import os
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from moot.cli.repl import programs
from moot.cli.repl.programs import copy_with_program

pytestmark = pytest.mark.anyio

MUCH = "a pipe holds less than this\n" * 10_000


@pytest.fixture
def environ(tmp_path: Path) -> Mapping[str, str]:
    """Environment of a desktop whose only clipboard program is written by the test."""
    return {"PATH": f"{tmp_path}:{os.environ['PATH']}", "WAYLAND_DISPLAY": "wayland-0"}


def program(folder: Path, script: str) -> None:
    path = folder / "wl-copy"
    path.write_text(f"#!/bin/sh\ncd {folder}\n{script}\n")
    path.chmod(0o755)


def running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


async def written(path: Path) -> int:
    while not (path.exists() and path.read_text().endswith("\n")):
        await anyio.sleep(0.01)
    return int(path.read_text())


async def test_a_program_gets_the_text_and_may_keep_running_to_serve_it(tmp_path: Path, environ: Mapping[str, str]) -> None:
    program(tmp_path, "cat > taken; sleep 60 <&- & echo $! > pid")
    assert await copy_with_program(MUCH, environ) == "wl-copy"
    assert (tmp_path / "taken").read_text() == MUCH
    server = await written(tmp_path / "pid")
    assert running(server)
    os.kill(server, 9)


@pytest.mark.parametrize("script", ["exec <&-; sleep 60", "cat > taken; sleep 60", "cat > taken; exit 1"])
async def test_a_program_that_fails_is_killed(
    tmp_path: Path, environ: Mapping[str, str], script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "COPY_SECONDS", 0.5)
    program(tmp_path, f"echo $$ > pid; {script}")
    assert await copy_with_program(MUCH, environ) == ""
    assert not running(await written(tmp_path / "pid"))


async def test_a_program_is_killed_when_copying_is_cancelled(tmp_path: Path, environ: Mapping[str, str]) -> None:
    program(tmp_path, "echo $$ > pid; sleep 60")
    async with anyio.create_task_group() as group:
        group.start_soon(copy_with_program, "words", environ)
        pid = await written(tmp_path / "pid")
        group.cancel_scope.cancel()
    assert not running(pid)
