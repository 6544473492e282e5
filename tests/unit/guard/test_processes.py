import ast
import asyncio
import os
import signal
from pathlib import Path

import anyio
import pytest

from moot.errors import Refused
from moot.guard import processes
from moot.guard.processes import MARK, Child, kill_leftover, output, process_started, spawn

pytestmark = pytest.mark.anyio

SOURCE = Path(processes.__file__).parents[1]
FORBIDDEN = {"system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "spawnl", "spawnv", "execv", "execve", "execvp"}

OF_ITSELF = {"cli/terminal/foreground.py": ["os.fork"]}
"""Modules in which moot continues in a copy of its own process. No other program is started."""

STARTERS = ("create_subprocess", "subprocess_exec", "subprocess_shell", "run_process", "open_process")


def starts_processes(tree: ast.AST) -> list[str]:
    found: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found += [name.name for name in names if name.name.partition(".")[0] in ("subprocess", "multiprocessing", "pty")]
            case ast.ImportFrom(module=str(module), names=names):
                if module.partition(".")[0] in ("subprocess", "multiprocessing", "pty") or module == "asyncio.subprocess":
                    found.append(module)
                found += [name.name for name in names if name.name.startswith("create_subprocess") or name.name == "run_process"]
                found += [name.name for name in names if module == "os" and name.name in FORBIDDEN]
            case ast.Attribute(value=ast.Name(id="os"), attr=name) if name in FORBIDDEN:
                found.append(f"os.{name}")
            case ast.Attribute(attr=name) if name.startswith(STARTERS):
                found.append(name)
            case ast.keyword(arg="shell", value=ast.Constant(value=True)):
                found.append("shell=True")
            case _:
                pass
    return found


@pytest.mark.slow
def test_only_one_module_starts_processes():
    offenders: dict[str, list[str]] = {}
    for path in SOURCE.rglob("*.py"):
        name = str(path.relative_to(SOURCE))
        if name != "guard/processes.py" and not name.startswith("testing/") and (found := starts_processes(ast.parse(path.read_text()))):
            offenders[name] = found
    assert offenders == OF_ITSELF


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess",
        "import os; os.system('x')",
        "import asyncio; asyncio.create_subprocess_exec('x')",
        "f(shell=True)",
        "from os import fork",
    ],
)
def test_the_check_finds_process_starts(code: str):
    assert starts_processes(ast.parse(code))


def alive(pid: int) -> bool:
    try:
        return processes._stat(pid)[0] not in "ZX"
    except OSError:
        return False


async def pid_in(path: Path) -> int:
    while True:
        if path.exists() and (text := path.read_text()).endswith("\n"):
            return int(text)
        await asyncio.sleep(0.01)


async def test_output_returns_the_output_of_a_command():
    done = await output(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (done.code, done.stdout, done.stderr) == (3, b"out\n", b"err\n")


async def test_arguments_reach_the_command_without_a_shell(tmp_path: Path):
    done = await output(["/bin/echo", "$(touch x); *", "`id`"], cwd=tmp_path)
    assert done.stdout == b"$(touch x); * `id`\n"
    assert not list(tmp_path.iterdir())


async def test_output_ends_a_command_for_time_and_for_size():
    assert (await output(["/bin/sleep", "60"], timeout=0.1)).code is None
    done = await output(["/bin/sh", "-c", "yes"], limit=100_000)
    assert (done.code, len(done.stdout)) == (None, 100_000)


async def test_a_missing_program_is_reported(tmp_path: Path):
    with pytest.raises(Refused, match="no-such-program"):
        await spawn(["no-such-program"], cwd=tmp_path)
    with pytest.raises(Refused):
        await spawn(["/bin/echo", "nul\0"])


async def test_the_environment_is_the_allow_list_by_default(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SOME_API_KEY", "canary")
    monkeypatch.setenv("UNHEARD_OF", "canary")
    done = await output(["/usr/bin/env"])
    assert b"canary" not in done.stdout
    assert MARK.encode() in done.stdout


async def test_a_gated_child_does_nothing_until_it_is_released(tmp_path: Path):
    child = await spawn(["/bin/sh", "-c", "echo ran; cat"], cwd=tmp_path, gated=True)
    assert child.stdout is not None
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(reading := asyncio.ensure_future(child.stdout.read(1))), 0.3)
    assert os.getpgid(child.group) == child.group
    assert process_started(child.group) == child.started
    await child.release()
    assert await reading + await child.stdout.read() == b"ran\n"
    assert await child.wait() == 0
    child.close()


async def test_a_gated_child_exits_if_its_parent_dies():
    child = await spawn(["/bin/echo", "ran"], gated=True)
    assert child.stdin is not None
    child.stdin.close()
    assert child.stdout is not None
    assert await child.stdout.read() == b""
    assert await child.wait() == 125
    child.close()


ZOO = {
    "ignores TERM": "trap '' TERM; (trap '' TERM; echo $$ > pid; while :; do sleep 1; done)",
    "has children": "sleep 60 & echo $! > pid; wait",
    "double-forks": "(sleep 60 & echo $! > pid) & wait; sleep 60",
    "is a session of its own": "setsid sh -c 'echo $$ > pid; exec sleep 60' & sleep 60",
    "is a daemon": "(setsid sh -c 'echo $$ > pid; exec sleep 60' >/dev/null 2>&1 </dev/null &) ; sleep 60",
}


@pytest.mark.parametrize("script", ZOO.values(), ids=ZOO.keys())
async def test_killing_reaches_everything_that_a_command_started(tmp_path: Path, script: str):
    child = await spawn(["/bin/sh", "-c", script], cwd=tmp_path)
    pid = await pid_in(tmp_path / "pid")
    await child.kill(grace=0.3)
    assert not alive(pid)
    assert not alive(child.group)


async def test_a_cancel_during_the_start_leaves_no_process(tmp_path: Path):
    child: Child | None = None
    with anyio.CancelScope() as scope:
        scope.cancel()
        child = await spawn(["/bin/sh", "-c", "sleep 60 & wait"])
        await anyio.sleep(0)
    assert scope.cancelled_caught and child is not None, "nobody can kill a child that is not returned"
    await child.kill(0)
    assert not alive(child.group)


async def test_a_terminated_command_can_clean_up(tmp_path: Path):
    child = await spawn(["/bin/sh", "-c", "trap 'echo tidy > done; exit' TERM; echo 1 > pid; while :; do sleep 0.05; done"], cwd=tmp_path)
    await pid_in(tmp_path / "pid")
    await child.kill()
    assert (tmp_path / "done").read_text() == "tidy\n"


async def test_a_leftover_group_is_killed_and_a_reused_id_is_not():
    child = await spawn(["/bin/sh", "-c", "sleep 60 & wait"])
    assert not await kill_leftover(child.group, "another-boot/123")
    assert not await kill_leftover(child.group, 12.5)
    assert not await kill_leftover(child.group, "")
    assert alive(child.group)
    assert await kill_leftover(child.group, child.started)
    assert not alive(child.group)
    await child.kill()
    assert not await kill_leftover(child.group, child.started)


async def test_a_leftover_whose_leader_is_gone_is_killed(tmp_path: Path):
    child = await spawn(["/bin/sh", "-c", "sleep 60 & echo $! > pid"], cwd=tmp_path, gated=True)
    await child.release()
    pid = await pid_in(tmp_path / "pid")
    await child.wait()
    assert alive(pid)
    assert await kill_leftover(child.group, child.started)
    assert not alive(pid)
    child.close()


@pytest.mark.slow
async def test_a_leftover_that_ignores_sigterm_is_killed(tmp_path: Path):
    child = await spawn(["/bin/sh", "-c", "trap '' TERM; echo $$ > pid; while :; do sleep 1; done"], cwd=tmp_path, gated=True)
    await child.release()
    await pid_in(tmp_path / "pid")
    assert await kill_leftover(child.group, child.started)
    assert not alive(child.group)
    assert await child.wait() == -signal.SIGKILL
    child.close()


@pytest.mark.parametrize("group", [-1, 0, 1])
async def test_foreign_process_groups_are_left_alone(group: int):
    assert not await kill_leftover(group, "x")


async def test_a_cancelled_call_leaves_nothing_behind(tmp_path: Path):
    task = asyncio.ensure_future(output(["/bin/sh", "-c", "sleep 60 & echo $! > pid; wait"], cwd=tmp_path))
    pid = await pid_in(tmp_path / "pid")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(pid)


async def test_a_process_with_an_odd_name_has_a_start_time(tmp_path: Path):
    odd = tmp_path / "a) R 1 (b"
    odd.symlink_to("/bin/sleep")
    child = await spawn([str(odd), "60"])
    assert child.started == process_started(child.group) != ""
    assert child.started != process_started(os.getpid())
    await child.kill()
    assert process_started(child.group) == ""
