from pathlib import Path
from typing import Any

import pytest

from moot.tools.builtin.file_changes import WriteFile, WriteFileArguments
from moot.tools.texts import DIFF_CHARACTERS
from moot.types.tool import ToolOutput

pytestmark = pytest.mark.anyio


async def write(context: Any, path: str, content: str) -> ToolOutput:
    return await WriteFile().run(WriteFileArguments(path=path, content=content), context)


async def test_a_new_file_is_created_with_its_folders(context: Any, folder: Path):
    assert (await write(context, "new/er/a.txt", "one\ntwo")).text == "Created new/er/a.txt (2 lines)."
    assert (folder / "new/er/a.txt").read_bytes() == b"one\ntwo"


async def test_an_old_file_is_replaced_and_the_difference_shown(context: Any, folder: Path):
    (folder / "a.txt").write_text("one\ntwo\n")
    output = await write(context, "a.txt", "one\r\n漢\n")
    assert output.text == "Replaced a.txt (2 lines)."
    assert (folder / "a.txt").read_bytes() == "one\r\n漢\n".encode()
    view = WriteFile().done(WriteFileArguments(path="a.txt", content="one\n2\n"), output)
    assert "-two\n+漢" in view.body
    assert view.language == "diff"


async def test_a_binary_file_may_be_replaced(context: Any, folder: Path):
    (folder / "a.bin").write_bytes(b"\0\1")
    assert not (await write(context, "a.bin", "text")).error


@pytest.mark.parametrize("path", ["../a.txt", "/tmp/a.txt", "sub", "link/a.txt", "file/x"])
async def test_paths_outside_the_roots_are_rejected(context: Any, folder: Path, path: str):
    (folder / "sub").mkdir()
    (folder / "file").touch()
    (folder / "link").symlink_to(folder.parent)
    assert (await write(context, path, "x")).error
    assert not (folder.parent / "a.txt").exists()
    assert sorted(item.name for item in folder.iterdir()) == ["file", "link", "sub"]


def test_a_long_text_is_shown_cut():
    view = WriteFile().doing(WriteFileArguments(path="a", content="x" * 100_000))
    assert len(view.body) < DIFF_CHARACTERS + 100
    assert len(WriteFile().doing(WriteFileArguments(path="a", content="x\n" * 100_000)).body) < 100
