import asyncio
import hashlib
import os
import resource
import signal
import tracemalloc
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from moot.guard.processes import process_started
from moot.tools import jobs as room
from moot.tools.builtin.shell import Shell, ShellArguments
from moot.tools.jobs import TAIL_BYTES, Spool
from moot.types.blob import Blob
from moot.types.limits import TOOL_OUTPUT_CHARACTERS
from moot.types.tool import ToolOutput

pytestmark = pytest.mark.anyio


async def shell(context: Any, command: str = "", **more: Any) -> ToolOutput:
    return await Shell().run(ShellArguments(command=command, **more), context)


@pytest.fixture(autouse=True)
async def closed(context: Any) -> AsyncIterator[None]:
    yield
    if "jobs" in context.drawer:
        await context.drawer["jobs"].aclose()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def pid_in(path: Path) -> int:
    while not (path.exists() and path.read_text().endswith("\n")):
        await asyncio.sleep(0.01)
    return int(path.read_text())


async def test_a_command_runs_in_the_folder_and_returns_its_output(context: Any, folder: Path):
    (folder / "a.txt").write_text("hello")
    output = await shell(context, "pwd; cat a.txt; echo err >&2")
    assert output.text == f"{folder}\nhelloerr\n"
    assert not output.error
    assert output.value == {"exit_code": 0}


async def test_a_failing_command_says_its_exit_code(context: Any):
    assert await shell(context, "echo no; exit 3") == ToolOutput("no\n\n(exit code 3)", {"exit_code": 3}, error=True)
    assert (await shell(context, "true")).text == "(no output)"
    assert (await shell(context, "kill -9 $$")).text == "(exit code -9)"


async def test_an_empty_command_is_a_failure(context: Any):
    assert (await shell(context, "  ")).error


async def test_input_is_closed(context: Any):
    assert (await shell(context, "cat; read x || echo end", timeout=5)).text == "end\n"


async def test_secrets_and_loaders_do_not_reach_a_command(context: Any, monkeypatch: pytest.MonkeyPatch):
    for name in ("ANTHROPIC_API_KEY", "MOOT_TOKEN", "LD_PRELOAD", "PYTHONPATH", "BASH_ENV", "GIT_DIR", "UNHEARD_OF"):
        monkeypatch.setenv(name, "canary")
    monkeypatch.setenv("WANTED", "wanted")
    context.settings = {"environment": ["WANTED"]}
    text = (await shell(context, "env")).text
    assert "canary" not in text
    assert "WANTED=wanted" in text
    context.settings = {"environment": ["MY_API_KEY"]}
    assert "never passed" in (await shell(context, "env")).text


async def test_invalid_settings_are_reported(context: Any):
    context.settings = {"environment": "canary"}
    output = await shell(context, "env")
    assert output.error and "tools.shell.environment" in output.text and "canary" not in output.text


async def test_the_journal_knows_the_group_before_the_command_acts(context: Any, folder: Path):
    seen: list[bool] = []
    note = context.note

    async def slow(body: Any) -> None:
        await asyncio.sleep(0.2)
        seen.append((folder / "acted").exists())
        assert process_started(body["pgid"]) == body["started"]
        await note(body)

    context.note = slow
    await shell(context, "touch acted")
    assert seen == [False]
    assert (folder / "acted").exists()
    assert len(context.noted) == 1


async def test_a_command_whose_note_fails_never_runs(context: Any, folder: Path):
    async def refuse(body: Any) -> None:
        raise RuntimeError

    context.note = refuse
    with pytest.raises(RuntimeError):
        await shell(context, "touch acted")
    await asyncio.sleep(0.1)
    assert not (folder / "acted").exists()


ZOO = {
    "ignores TERM": "trap '' TERM; echo $$ > pid; while :; do sleep 1; done",
    "double-forks": "(sleep 60 & echo $! > pid) & wait; sleep 60",
    "leaves its session": "setsid bash -c 'echo $$ > pid; exec sleep 60' & sleep 60",
    "prints no newline": "echo $$ > pid; while :; do printf x; sleep 0.01; done",
}


@pytest.mark.parametrize("command", ZOO.values(), ids=ZOO.keys())
@pytest.mark.slow
async def test_a_timeout_kills_all_that_was_started(context: Any, folder: Path, command: str):
    output = await shell(context, command, timeout=0.5)
    assert output.error
    assert "killed after 0.5 seconds" in output.text
    assert not alive(await pid_in(folder / "pid"))


async def test_a_process_that_keeps_the_pipe_open_does_not_block_the_call(context: Any, folder: Path):
    escaped = "env -i setsid sh -c 'echo $$ > escaped; exec sleep 600'"
    command = f"echo first; (sleep 60; echo late) & echo $! > pid; {escaped} & while ! [ -s escaped ]; do sleep 0.01; done; echo last"
    output = await shell(context, command, timeout=100)
    left = await pid_in(folder / "escaped")
    assert alive(left)
    os.kill(left, signal.SIGKILL)
    assert output.text == "first\nlast\n"
    assert not alive(await pid_in(folder / "pid"))


async def test_a_cancelled_call_kills_its_command(context: Any, folder: Path):
    task = asyncio.create_task(shell(context, "sleep 60 & echo $! > pid; wait"))
    pid = await pid_in(folder / "pid")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(pid)


async def test_binary_and_invalid_output_is_made_readable(context: Any):
    assert (await shell(context, r"printf 'a\xff\x00\x1b[31mred\x1b]0;t\x07\rb'")).text == "a\ufffdred\nb"


async def test_a_long_output_keeps_both_ends_and_the_rest_in_a_blob(context: Any):
    output = await shell(context, "seq 100000")
    assert len(output.text) <= TOOL_OUTPUT_CHARACTERS
    assert output.text.startswith("1\n2\n")
    assert output.text.endswith("\n100000\n")
    sha256 = output.text.partition("blob:")[2][:64]
    assert context.blobs.kept[sha256] == "".join(f"{n}\n" for n in range(1, 100_001)).encode()


async def test_a_command_with_endless_output_is_killed(context: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(room, "OUTPUT_BYTES", 20_000_000)
    output = await shell(context, "yes 0123456789", timeout=60)
    assert output.error
    assert "it wrote more than 20 MB" in output.text
    assert len(output.text) <= TOOL_OUTPUT_CHARACTERS
    (kept,) = context.blobs.kept.values()
    assert len(kept) > 20_000_000 and b"omitted" not in kept


async def test_both_ends_of_longer_output_are_kept(context: Any):
    context.settings = {"kept_bytes": 1_500_000}
    output = await shell(context, "seq 1000000")
    whole = "".join(f"{n}\n" for n in range(1, 1_000_001)).encode()
    left_out = len(whole) - 1_500_000 - TAIL_BYTES
    (kept,) = context.blobs.kept.values()
    assert kept == whole[:1_500_000] + b"\n[%d bytes omitted]\n" % left_out + whole[-TAIL_BYTES:]
    assert output.text.startswith("1\n2\n") and output.text.endswith("\n1000000\n")


async def test_fifty_megabytes_are_kept_whole_and_never_in_memory(context: Any):
    hashes = _Hashing()
    context.blobs = hashes
    tracemalloc.start()
    try:
        output = await shell(context, "seq 6600000")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert output.whole is not None and output.whole.rows == 6_600_001 and output.whole.size == hashes.size > 50_000_000
    assert hashes.sha256.hexdigest() == _counted(6_600_000)
    assert len(output.text) <= TOOL_OUTPUT_CHARACTERS and output.text.endswith("\n6600000\n")
    assert f"[… {hashes.size - 29_000:,} characters omitted; read_file shows everything" in output.text
    assert peak < 12_000_000


class _Hashing:
    """Accept a blob and record its hash."""

    def __init__(self) -> None:
        self.sha256, self.size = hashlib.sha256(), 0

    async def put_from(self, pieces: AsyncIterable[bytes], media_type: str) -> Blob:
        async for piece in pieces:
            self.sha256.update(piece)
            self.size += len(piece)
        return Blob(self.sha256.hexdigest(), self.size, media_type)


def _counted(last: int) -> str:
    found = hashlib.sha256()
    for begin in range(1, last + 1, 100_000):
        found.update("".join(f"{n}\n" for n in range(begin, min(begin + 100_000, last + 1))).encode())
    return found.hexdigest()


@pytest.mark.parametrize("kept", [0, 10, 700_000, 2_000_000, 50_000_000])
async def test_a_spool_holds_both_ends_exactly(kept: int):
    whole = b"".join(b"%09d\n" % number for number in range(400_000))
    with closing(Spool(kept)) as spool:
        for start in range(0, len(whole), 99_991):
            await spool.add(whole[start : start + 99_991])
            assert spool.end(2_000) == whole[: start + 99_991][-2_000:]
        rest = whole[kept:]
        missing = max(0, len(rest) - TAIL_BYTES)
        said = b"\n[%d bytes omitted]\n" % missing if missing else b""
        assert b"".join(spool.pieces(spool.snapshot())) == whole[:kept] + said + rest[-TAIL_BYTES:]


async def test_a_full_disk_loses_the_middle_of_the_output_only():
    pieces = [bytes([65 + number]) * 500_000 for number in range(8)]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with closing(Spool()) as spool:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_700_000, before[1]))
        try:
            for piece in pieces:
                await spool.add(piece)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        read = b"".join(spool.pieces(spool.snapshot()))
    assert read == b"".join(pieces[:3]) + b"\n[%d bytes omitted]\n" % 2_300_000 + pieces[-1][:TAIL_BYTES]


async def test_a_background_command_is_seen_and_killed(context: Any, folder: Path):
    output = await shell(context, "echo hello; echo $$ > pid; sleep 60", background=True)
    assert output.value == {"id": "1"}
    pid = await pid_in(folder / "pid")
    assert (await shell(context, action="status")).text == "1: running: echo hello; echo $$ > pid; sleep 60"
    while "hello" not in (await shell(context, action="output", id="1")).text:
        await asyncio.sleep(0.01)
    assert alive(pid)
    assert (await shell(context, action="kill", id="1")).text == "1: killed"
    assert not alive(pid)
    assert (await shell(context, action="status", id="1")).text == "1: killed"
    assert (await shell(context, action="kill", id="1")).text == "1: killed"
    assert context.noted[0]["pgid"]


async def test_a_finished_background_command_shows_its_exit_code(context: Any):
    await shell(context, "echo done; exit 4", background=True)
    while "running" in (text := (await shell(context, action="output", id="1")).text):
        await asyncio.sleep(0.01)
    assert text == "done\n\n(exit code 4)"
    assert (await shell(context, action="output", id="9")).error


async def test_background_commands_end_with_the_loop(context: Any, folder: Path):
    await shell(context, "echo $$ > pid; sleep 60", background=True)
    pid = await pid_in(folder / "pid")
    task = context.drawer["jobs"].jobs["1"].task
    task.cancel()
    await asyncio.wait({task})
    assert not alive(pid)


@pytest.mark.slow
async def test_a_long_command_shows_how_far_it_is(context: Any):
    await shell(context, "echo so far; sleep 2.3")
    assert context.reported == ["so far\n"]


async def test_views_show_the_whole_command_when_it_is_long():
    assert Shell().doing(ShellArguments(command="ls")).title == "$ ls"
    view = Shell().doing(ShellArguments(command="ls\nrm x"))
    assert (view.title, view.body, view.language) == ("$ ls rm x", "ls\nrm x", "bash")
