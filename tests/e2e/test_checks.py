"""Formatters and checks of the configuration, which run after edits."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.test_custom_tools import calling, confined, outputs
from moot.config.settings import SandboxSettings
from moot.tools.checks import new_lines
from moot.types.agent import Agent
from moot.types.canonical import JsonObject
from moot.types.command_tool import Check

pytestmark = pytest.mark.anyio

Work = Callable[..., Any]

GREP = Check("*.txt", "! grep -n bad {file} /dev/null")
"""A check that prints each line with the word, and fails if there is one."""


def edit(old: str, new: str, path: str = "a.txt") -> JsonObject:
    return {"path": path, "edits": [{"old_text": old, "new_text": new}]}


@pytest.fixture
def work(stage: Any, directory: Path) -> Work:
    """Run calls of a tool with these checks and return the outputs that the model got."""

    @asynccontextmanager
    async def opened(
        *checks: Check, tool: str = "edit_file", calls: tuple[JsonObject, ...], **more: Any
    ) -> AsyncGenerator[list[str], None]:
        more = {"sandbox": SandboxSettings(), **more}
        async with stage(calling(tool, *calls), checks=checks, **more) as on:
            if more["sandbox"].enabled:
                await confined(on)
            run, _ = await on.ask("go")
            assert run.status == "finished"
            yield outputs(on)

    return opened


async def test_only_new_problems_are_added_to_the_output_of_an_edit(work: Work, directory: Path) -> None:
    (directory / "a.txt").write_text("one\nbad old\ntwo\n")
    async with work(GREP, calls=(edit("one", "bad new\none"), edit("two", "three"), edit("bad new\n", ""))) as got:
        assert got[0].splitlines()[1:] == ["New problems after this change:", "a.txt:1:bad new"]
        assert got[1].splitlines()[1:] == [] and got[2].splitlines()[1:] == []


async def test_checks_run_only_for_matching_files_and_their_names_are_quoted(work: Work, directory: Path) -> None:
    calls = tuple({"path": path, "content": "bad"} for path in ("a b;touch gained.txt", "-rf.txt", "a.md", "sub/x.txt"))
    async with work(GREP, Check("other/*.txt", "exit 1"), tool="write_file", calls=calls) as got:
        assert [text.splitlines()[2:] for text in got] == [["a b;touch gained.txt:1:bad"], ["./-rf.txt:1:bad"], [], ["sub/x.txt:1:bad"]]
    assert sorted(path.name for path in directory.iterdir()) == ["-rf.txt", "a b;touch gained.txt", "a.md", "sub"]


async def test_a_formatter_runs_first_and_the_next_edit_sees_what_it_wrote(work: Work, directory: Path) -> None:
    upper = Check("*.txt", "tr a-z A-Z <{file} >/tmp/x && cp /tmp/x {file}", formats=True)
    (directory / "a.txt").write_text("one\n")
    shouting = Check("*.txt", "! grep -n BAD {file} /dev/null")
    async with work(shouting, upper, calls=(edit("one", "bad"), edit("BAD", "good"))) as got:
        assert "The formatters of the configuration changed the file:" in got[0] and "+BAD" in got[0]
        assert got[0].endswith("New problems after this change:\na.txt:1:BAD") and "problems" not in got[1]
    assert (directory / "a.txt").read_text() == "GOOD\n"


async def test_what_a_formatter_that_fails_wrote_is_undone(work: Work, directory: Path) -> None:
    (directory / "a.txt").write_text("one\n")
    async with work(Check("*.txt", ": >{file}; echo broken; exit 3", formats=True), calls=(edit("one", "two"),)) as got:
        assert "failed: broken]" in got[0] and "were undone" in got[0]
    assert (directory / "a.txt").read_text() == "two\n"


async def test_a_check_can_change_nothing_and_no_command_has_the_network(work: Work, directory: Path) -> None:
    new: JsonObject = {"path": "a.txt", "content": "two"}
    with socket.create_server(("127.0.0.1", 0)) as listening:
        connect = f"(exec 3<>/dev/tcp/127.0.0.1/{listening.getsockname()[1]}) 2>/dev/null && echo connected"
        check = Check("*.txt", f"touch gained; echo x >>{{file}}; {connect}; mkdir $RUFF_CACHE_DIR && echo cached; false")
        formatter = Check("*.txt", f"{connect} >>{{file}}; true", formats=True)
        async with work(check, formatter, tool="write_file", calls=(new,), sandbox=SandboxSettings(network=True)) as got:
            assert "connected" not in got[0] and "cached" in got[0]
    assert (directory / "a.txt").read_text() == "two" and not (directory / "gained").exists()


@pytest.mark.parametrize(
    "command, note",
    [
        ("no-such-program {file}", "its program was not found"),
        ("kill -SEGV $$", "crashed with exit code"),
        pytest.param("sleep 60", "did not finish in time", marks=pytest.mark.slow),
    ],
)
async def test_a_check_that_fails_to_run_is_one_line_and_no_error(work: Work, directory: Path, command: str, note: str) -> None:
    with anyio.fail_after(30):
        async with work(Check("*.txt", command), tool="write_file", calls=({"path": "a.txt", "content": "x"},)) as got:
            assert len(got[0].splitlines()) == 2 and note in got[0]


async def test_at_most_twenty_problems_are_added(work: Work) -> None:
    content = "".join(f"bad {'x' * 1000}\n" for _ in range(50))
    async with work(GREP, tool="write_file", calls=({"path": "a.txt", "content": content},)) as got:
        assert len(got[0].splitlines()) == 23 and got[0].endswith("[30 more lines]") and len(got[0]) < 8_000


async def test_nothing_runs_without_a_sandbox(work: Work, directory: Path) -> None:
    check = Check("*.txt", "touch gained")
    async with work(check, tool="write_file", calls=({"path": "a.txt", "content": "x"},), sandbox=SandboxSettings(enabled=False)) as got:
        assert "did not run, because the sandbox is turned off" in got[0]
    assert not (directory / "gained").exists()


async def test_diagnostics_checks_all_matching_files_of_a_folder(work: Work, directory: Path) -> None:
    for name in ("a.txt", "sub/b.txt", "ignored/c.txt", "d.md"):
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text("bad")
    (directory / ".gitignore").write_text("ignored")
    agents = {"default": Agent("default", tools=("diagnostics",))}
    async with work(GREP, tool="diagnostics", calls=({}, {"path": "d.md"}), agents=agents) as got:
        assert got == ["2 files checked: problems found.\na.txt:1:bad\nsub/b.txt:1:bad", "1 file checked: no problems."]


def test_moved_lines_are_not_new() -> None:
    before = ["a.py:10:1: E501 Line too long (101 > 100)", "a.py:20:1: F401 unused", "Found 2 errors."]
    new = "a.py:3:1: E501 Line too long (120 > 100)"
    moved = [new, "a.py:11:1: E501 Line too long (101 > 100)", "a.py:21:1: F401 unused", "Found 3 errors."]
    assert new_lines(before, moved) == [new]
    assert new_lines(before, before[1:]) == [] and new_lines([], before) == before
