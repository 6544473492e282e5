"""Memory reads and writes below its folders only."""

from __future__ import annotations

import ctypes
import fcntl
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from moot.errors import MootError, NotFound, Refused
from moot.knowledge.prompt import INDEX_LINES, prompt_part
from moot.tools.builtin.knowledge import MemoryArguments, MemoryTool
from moot.tools.memory import FILE_BYTES, Memory, all_folders, memory_folders
from moot.types.agent import Agent
from moot.types.prompt import PromptContext
from moot.types.tool import ToolOutput

pytestmark = pytest.mark.anyio


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "data").mkdir(parents=True)
    (tmp_path / "home" / "data" / "moot.db").touch()
    return tmp_path / "home"


@pytest.fixture
def memory(home: Path, folder: Path) -> Memory:
    return Memory(memory_folders(home, "reviewer", str(folder), is_local=True))


async def memory_text(home: Path, agent: str, folder: str, *, is_local: bool = True) -> str:
    return await prompt_part(PromptContext(Agent(agent), folder, home=home, is_local=is_local))


async def call(context: Any, memory: Memory, **arguments: Any) -> ToolOutput:
    context.memory = memory.folders
    return await MemoryTool().run(MemoryArguments(**arguments), context)


async def test_the_tool_keeps_files_in_all_three_places(context: Any, memory: Memory, home: Path, folder: Path):
    assert (await call(context, memory, action="append", path="MEMORY.md", content="- one")).text == "Created MEMORY.md."
    assert (await call(context, memory, action="append", path="MEMORY.md", content="- two")).text == "Added to MEMORY.md."
    assert not (await call(context, memory, action="write", path="home/MEMORY.md", content="of the home")).error
    assert not (await call(context, memory, action="write", path="agents/reviewer/a/b/c.md", content="of the agent")).error
    assert (folder / ".moot/memory/MEMORY.md").read_text() == "- one\n- two\n"
    assert (home / "memory/MEMORY.md").read_text() == "of the home\n"
    listed = (await call(context, memory, action="list")).text.splitlines()
    assert [line.partition(" ")[0] for line in listed] == ["home/MEMORY.md", "agents/reviewer/a/b/c.md", "project/MEMORY.md"]
    assert (await call(context, memory, action="search", query="TWO")).text == "project/MEMORY.md:2: - two"
    assert (await call(context, memory, action="read", path="project/MEMORY.md")).text == "- one\n- two\n"


@pytest.mark.parametrize(
    "path",
    [
        *(
            "../escape.md",
            "/etc/motd.md",
            "a/../../b.md",
            "notes.txt",
            ".hidden.md",
            "a/b/c/d/e.md",
            "x\x00.md",
            "x\u202e.md",
            "a//b.md",
            "",
        ),
        *("home/../config.md", "home/agents/other/MEMORY.md", "agents/other/MEMORY.md", "project/../../x.md", "con\nfig.md"),
    ],
)
async def test_other_names_are_refused(context: Any, memory: Memory, tmp_path: Path, path: str):
    before = sorted(tmp_path.rglob("*"))
    for action in ("write", "append", "read"):
        assert (await call(context, memory, action=action, path=path, content="x")).error
    assert [one for one in sorted(tmp_path.rglob("*")) if one not in before and one.is_file()] == []


@pytest.mark.parametrize("link", ["file", "folder", "memory", ".moot", "inside"])
async def test_links_are_not_followed_out_of_memory(context: Any, memory: Memory, folder: Path, tmp_path: Path, link: str):
    outside = tmp_path / "outside"
    (outside / "memory").mkdir(parents=True)
    target = {"file": outside / "x.md", "folder": outside, "memory": outside / "memory", ".moot": outside, "inside": folder / "AGENTS.md"}[
        link
    ]
    own = folder / ".moot" / "memory"
    place = {"file": own / "x.md", "folder": own / "sub", "memory": own, ".moot": folder / ".moot", "inside": own / "x.md"}[link]
    place.parent.mkdir(parents=True, exist_ok=True)
    for file in (outside / "x.md", outside / "memory" / "x.md", folder / "AGENTS.md"):
        file.write_text("secret")
    place.symlink_to(target)
    path = "sub/x.md" if link == "folder" else "x.md"
    for action in ("read", "write", "append"):
        output = await call(context, memory, action=action, path=path, content="overwritten")
        assert output.error and "secret" not in output.text
    assert "secret" not in (await call(context, memory, action="search", query="secret")).text
    with pytest.raises(MootError):
        memory.delete(path)
    for file in (outside / "x.md", outside / "memory" / "x.md", folder / "AGENTS.md"):
        assert file.read_text() == "secret"


async def test_hidden_characters_are_flagged_to_the_model_and_never_hidden(context: Any, memory: Memory, folder: Path, home: Path):
    output = await call(context, memory, action="write", path="MEMORY.md", content="fine\n\u200bobey\U000e0041")
    assert "2 hidden characters (U+200B, U+E0041) on line 2" in output.text
    assert "\u200b" in (folder / ".moot/memory/MEMORY.md").read_text()
    output = await call(context, memory, action="read", path="MEMORY.md")
    assert "<U+200B>obey<U+E0041>" in output.text and "2 hidden characters" in output.text
    assert "has hidden characters" in (await call(context, memory, action="list")).text
    text = await memory_text(home, "default", str(folder))
    assert "<U+200B>obey<U+E0041>" in text and "2 hidden characters" in text and "\u200b" not in text


async def test_sizes_are_bounded(context: Any, memory: Memory, folder: Path):
    await call(context, memory, action="write", path="MEMORY.md", content="x" * (FILE_BYTES - 2))
    output = await call(context, memory, action="append", path="MEMORY.md", content="yy")
    assert output.error and "larger than 256 KiB" in output.text
    assert (folder / ".moot/memory/MEMORY.md").stat().st_size == FILE_BYTES - 1


def test_lines_added_at_the_same_time_are_all_kept(memory: Memory):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: memory.write("log.md", f"line {number}", append=True), range(40)))
    assert sorted(memory.read("log.md").splitlines()) == sorted(f"line {number}" for number in range(40))


async def test_other_users_reach_only_the_memory_of_their_project(home: Path, folder: Path):
    (home / "memory").mkdir()
    (home / "memory" / "MEMORY.md").write_text("private")
    theirs = Memory(memory_folders(home, "default", str(folder), is_local=False))
    assert [part.name for part in theirs.folders] == ["project"]
    with pytest.raises(MootError):
        theirs.read("home/MEMORY.md")
    assert await memory_text(home, "default", str(folder), is_local=False) == ""
    with pytest.raises(Refused):
        Memory(memory_folders(home, "default", "", is_local=False)).read("MEMORY.md")


async def test_the_prompt_has_the_beginning_of_each_index_nearest_last(home: Path, folder: Path, memory: Memory):
    assert await memory_text(home, "reviewer", str(folder)) == ""
    memory.write("home/MEMORY.md", "of the home")
    memory.write("agents/reviewer/MEMORY.md", "of the agent")
    memory.write("project/MEMORY.md", "\n".join(f"line {number}" for number in range(1, INDEX_LINES + 10)))
    text = await memory_text(home, "reviewer", str(folder))
    assert text.index("of the home") < text.index("of the agent") < text.index("line 1\n")
    assert f"line {INDEX_LINES}\n" in text and f"line {INDEX_LINES + 1}" not in text
    assert f"the file has {INDEX_LINES + 9} lines" in text
    assert "of the agent" not in await memory_text(home, "default", str(folder))


async def test_an_index_is_read_again_only_after_a_change(home: Path, folder: Path, memory: Memory):
    index = home / "memory" / "MEMORY.md"
    memory.write("home/MEMORY.md", "before")
    assert "before" in await memory_text(home, "default", "")
    status = index.stat()
    with index.open("r+") as file:
        file.write("edited")
    os.utime(index, ns=(status.st_atime_ns, status.st_mtime_ns))  # same size and time: not even opened
    assert "before" in await memory_text(home, "default", "")
    memory.write("home/MEMORY.md", "after")
    assert "after" in await memory_text(home, "default", "")
    memory.delete("home/MEMORY.md")
    assert await memory_text(home, "default", "") == ""


def test_a_person_sees_the_memory_of_every_agent(home: Path, folder: Path, memory: Memory):
    memory.write("agents/reviewer/MEMORY.md", "x")
    assert [part.name for part in all_folders(home, str(folder))] == ["home", "agents/reviewer", "project"]
    fresh = Memory(all_folders(home, "", "agents/other/MEMORY.md"))
    assert fresh.write("agents/other/MEMORY.md", "new")
    fresh.delete("agents/other/MEMORY.md")
    with pytest.raises(NotFound):
        fresh.read("agents/other/MEMORY.md")


async def test_files_that_cannot_be_used_are_listed_with_the_reason_and_hide_no_others(
    context: Any, memory: Memory, folder: Path, tmp_path: Path
):
    own = folder / ".moot" / "memory"
    own.mkdir(parents=True)
    (own / "a\nb.md").write_text("tea")
    (own / "big.md").write_bytes(b"tea\n" + b"x" * FILE_BYTES)
    (own / "link.md").symlink_to(tmp_path)
    os.mkfifo(own / "pipe.md")
    (own / "z.md").write_text("tea")
    problems = {file.path.name: file.problem for file in memory.files()}
    assert "unusual characters" in problems["a\nb.md"] and "only the beginning" in problems["big.md"]
    assert "link" in problems["link.md"] and "not a regular file" in problems["pipe.md"] and not problems["z.md"]
    found = memory.search("tea")
    assert [match.name for match in found.matches] == ["project/big.md", "project/z.md"]
    assert len(found.problems) == 4
    assert len((await call(context, memory, action="list")).text.splitlines()) == 5
    assert "only the beginning" in (await call(context, memory, action="search", query="tea")).text
    with pytest.raises(Refused, match="larger than 256 KiB"):  # an editor would cut it
        memory.read("big.md")
    with pytest.raises(Refused, match="larger than 256 KiB"):
        memory.write("big.md", "x", append=True)
    memory.delete("big.md")


def test_a_folder_of_memory_that_is_a_link_is_named(home: Path, folder: Path, tmp_path: Path):
    (folder / ".moot").mkdir()
    (folder / ".moot" / "memory").symlink_to(tmp_path)
    (listed,) = Memory(memory_folders(home, "", str(folder), is_local=False)).files()
    assert listed.name == "project/" and "link" in listed.problem


def test_files_over_the_limit_are_named(memory: Memory, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("moot.tools.memory.FILES", 2)
    for name in ("a.md", "b.md"):
        memory.write(name, "x")
    with pytest.raises(Refused, match="the maximum"):
        memory.write("c.md", "x")
    (memory.folders[-1].path / "c.md").write_text("x")
    assert [file.problem for file in memory.files()] == ["", "", "Only its first 2 files are used."]


@pytest.mark.parametrize(
    ("before", "append", "after"),
    [
        (b"one\r\ntwo", True, b"one\r\ntwo\r\nthree\r\nfour\r\n"),
        (b"one\r\ntwo\r\n", False, b"three\r\nfour\r\n"),
        (b"\xef\xbb\xbfone\n", False, b"\xef\xbb\xbfthree\nfour\n"),
        (b"caf\xe9", True, b"caf\xe9\nthree\nfour\n"),
    ],
)
def test_line_ends_and_bytes_of_the_file_are_kept(memory: Memory, before: bytes, append: bool, after: bytes):
    memory.write("x.md", "")
    path = memory.folders[-1].path / "x.md"
    path.write_bytes(before)
    memory.write("x.md", "three\nfour", append=append)
    assert path.read_bytes() == after


def test_a_lock_that_is_never_released_does_not_block_forever(memory: Memory, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("moot.tools.memory.LOCK_SECONDS", 0.0)
    memory.write("x.md", "before")
    holder = os.open(memory.folders[-1].path, os.O_RDONLY)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(Refused, match="locked"):
            memory.write("x.md", "after")
    finally:
        os.close(holder)
    assert memory.read("x.md") == "before\n"


def test_a_folder_that_is_swapped_for_a_link_leads_nowhere(memory: Memory, folder: Path, tmp_path: Path):
    outside = tmp_path / "outside" / "memory"
    outside.mkdir(parents=True)
    (outside / "x.md").write_text("secret")
    memory.write("x.md", "ours")
    own, link = (str(path).encode() for path in (folder / ".moot", folder / "link"))
    (folder / "link").symlink_to(outside.parent)
    exchange = partial(ctypes.CDLL(None, use_errno=True).renameat2, -100, own, -100, link, 2)  # AT_FDCWD, RENAME_EXCHANGE
    if exchange():
        pytest.skip("this file system can't exchange two names")
    is_done = threading.Event()

    def swap() -> None:
        while not is_done.is_set():
            exchange()

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for number in range(300):
            with suppress(MootError):
                assert memory.read("x.md") != "secret"
            with suppress(MootError):
                memory.write(f"{number % 3}.md", "ours", append=True)
            assert not memory.search("secret").matches
    finally:
        is_done.set()
        thread.join()
    assert sorted(path.name for path in outside.iterdir()) == ["x.md"] and (outside / "x.md").read_text() == "secret"


def test_a_long_line_that_matches_is_shown_around_the_word(memory: Memory):
    memory.write("x.md", "a" * 5_000 + " heliotrope " + "b" * 5_000)
    (match,) = memory.search("heliotrope").matches
    assert "heliotrope" in match.text and len(match.text) < 500


async def test_a_search_in_a_thousand_files_does_not_block_the_loop(context: Any, memory: Memory):
    memory.write("notes/0.md", "heliotrope")
    for number in range(1, 999):
        (memory.folders[-1].path / "notes" / f"{number}.md").write_text("line\n" * 50)
    outputs: list[ToolOutput] = []
    turns = 0

    async def search() -> None:
        outputs.append(await call(context, memory, action="search", query="heliotrope"))

    async with anyio.create_task_group() as group:
        group.start_soon(search)
        while not outputs:
            await anyio.sleep(0)
            turns += 1
    assert outputs[0].text == "project/notes/0.md:1: heliotrope" and turns > 10
