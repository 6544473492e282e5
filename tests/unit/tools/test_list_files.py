import os
from pathlib import Path
from typing import Any

import pytest

from moot.tools.builtin.file_search import ENTRIES, ListFiles, ListFilesArguments

pytestmark = pytest.mark.anyio


async def listing(context: Any, path: str = ".") -> str:
    return (await ListFiles().run(ListFilesArguments(path=path), context)).text


async def test_entries_come_sorted_with_their_kinds(context: Any, folder: Path):
    (folder / "sub").mkdir()
    (folder / "b.txt").write_bytes(b"x" * 1234)
    (folder / "a.txt").write_bytes(b"x")
    (folder / "link").symlink_to("/etc")
    os.mkfifo(folder / "pipe")
    assert await listing(context) == "a.txt (1 byte)\nb.txt (1.2 KB)\nlink (link)\npipe (special file)\nsub/"


async def test_an_empty_folder_is_reported_as_empty(context: Any, folder: Path):
    (folder / "sub").mkdir()
    assert await listing(context, "sub") == "sub is empty."


async def test_names_with_invalid_utf_8_are_shown(context: Any, folder: Path):
    (folder / os.fsdecode(b"caf\xe9")).touch()
    assert "caf\ufffd" in await listing(context)


async def test_a_huge_folder_is_truncated(context: Any, folder: Path):
    for number in range(ENTRIES + 5):
        (folder / f"{number:04}").touch()
    assert (await listing(context)).splitlines()[-1] == f"(There are more than {ENTRIES} entries. Use find_files to search by name.)"


@pytest.mark.parametrize("path", ["..", "/", "file.txt", "missing", "link"])
async def test_paths_outside_the_roots_are_rejected(context: Any, folder: Path, path: str):
    (folder / "file.txt").touch()
    (folder / "link").symlink_to("/etc")
    output = await ListFiles().run(ListFilesArguments(path=path), context)
    assert output.error
