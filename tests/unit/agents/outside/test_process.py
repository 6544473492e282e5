"""An agent's process: lines, stderr, floods, noise, and its end."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest

from moot.agents.outside import process
from moot.agents.outside.process import Program
from moot.errors import ConfigError, ProviderError

pytestmark = pytest.mark.anyio


def python(code: str, folder: Path) -> Program:
    return Program([sys.executable, "-u", "-c", code], cwd=folder, env={})


async def lines(program: Program) -> list[bytes]:
    return [line async for read in program.reads() for line in read]


async def test_lines_are_complete_and_add_up_to_the_output(tmp_path: Path) -> None:
    async with python("import sys; sys.stdout.write('a\\nb' * 3 + '\\r\\n\\n' + 'x' * 300000 + '\\ntail')", tmp_path) as program:
        got = await lines(program)
    assert b"".join(got) == b"a\nb" * 3 + b"\r\n\n" + b"x" * 300000 + b"\ntail"
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in got[:-1]) and got[-1] == b"tail"


async def test_lines_written_by_moot_are_read(tmp_path: Path) -> None:
    async with python("import sys\nfor line in sys.stdin: print(line.upper(), end='')", tmp_path) as program:
        reads = program.reads()
        await program.write(b"one\n")
        assert await anext(reads) == (b"ONE\n",)
        await reads.aclose()


async def test_a_missing_program_shows_its_install_command(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'no-such-agent' is not installed") as caught:
        async with Program(["no-such-agent"], cwd=tmp_path, env={}, hint="npm install -g it"):
            pass
    assert caught.value.fix == "npm install -g it"


async def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="gone' of"):
        async with Program(["cat"], cwd=tmp_path / "gone", env={}):
            pass


async def test_exit_code_and_cleaned_stderr_are_reported(tmp_path: Path) -> None:
    code = "import sys; sys.stderr.write('x' * 9000 + '\\x1b[31mno such model\\x1b[0m\\n'); sys.exit(3)"
    async with python(code, tmp_path) as program:
        assert await lines(program) == []
        error = program.died("ended", await program.ended(5))
    assert "(exit code 3): …xxx" in error.message and error.message.endswith("no such model")
    assert len(program.complaint()) == process.COMPLAINT


async def test_a_flood_on_stderr_blocks_nothing(tmp_path: Path) -> None:
    async with python("import sys; sys.stderr.write('no\\n' * 400000); print('done')", tmp_path) as program:
        with anyio.fail_after(60):
            assert await lines(program) == [b"done\n"]


async def test_a_line_over_the_limit_ends_the_reading_and_is_yielded(tmp_path: Path) -> None:
    code = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
    async with Program([sys.executable, "-c", code], cwd=tmp_path, env={}, longest=1 << 20) as program:
        got: list[bytes] = []
        with pytest.raises(ProviderError, match="a line of more than"):
            async for read in program.reads():
                got += read
    assert len(got) == 1 and len(got[0]) > 1 << 20


async def test_a_process_that_ignores_signals_is_killed_with_its_children(tmp_path: Path) -> None:
    code = (
        "import signal, subprocess, sys, time\n"
        "for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(one, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        "print(child.pid, flush=True)\n"
        "while True: time.sleep(60)"
    )
    async with python(code, tmp_path) as program:
        reads = program.reads()
        (line,) = await anext(reads)
        await reads.aclose()
        began = anyio.current_time()
    assert anyio.current_time() - began < process.GRACE + 30
    assert not _lives(program.child.group) and not _lives(int(line))


async def test_a_cancel_while_waiting_for_the_exit_leaves_no_process(tmp_path: Path) -> None:
    program = python("import time; print('up'); time.sleep(60)", tmp_path)
    with anyio.CancelScope() as scope:
        async with program:
            await anext(program.reads())
            scope.deadline = anyio.current_time() + 0.05  # it is awaited by then: closing its stdin does not end it
    assert scope.cancelled_caught and not _lives(program.child.group)


async def test_writing_to_an_ended_process_raises_a_clear_error(tmp_path: Path) -> None:
    async with python("import sys; sys.exit('no key')", tmp_path) as program:
        await lines(program)
        await program.ended(5)
        with pytest.raises(ProviderError, match="stopped reading its input: no key"):
            for _ in range(100):
                await program.write(b"x" * 65536)


async def test_the_agents_environment_has_only_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ITS_API_KEY", "for it")
    monkeypatch.setenv("OTHER_API_KEY", "not for it")
    code = "import os; print(sorted(name for name in os.environ if name.endswith('_API_KEY') or name == 'MINE'))"
    async with Program([sys.executable, "-c", code], cwd=tmp_path, env={"MINE": "1"}, keeps=["ITS_API_KEY"]) as program:
        assert await lines(program) == [b"['ITS_API_KEY', 'MINE']\n"]


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
