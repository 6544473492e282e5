import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moot.tools.builtin.file_changes import FILE_BYTES, Edit, EditFile, EditFileArguments
from moot.types.tool import ToolOutput

pytestmark = pytest.mark.anyio


async def edit(context: Any, *edits: tuple[str, str], path: str = "a.txt", **more: Any) -> ToolOutput:
    wanted = [Edit(old_text=old, new_text=new, **more) for old, new in edits]
    return await EditFile().run(EditFileArguments(path=path, edits=wanted), context)


DRESSES = [
    ("lf", b"one\ntwo\nthree\n", b"one\n2\nthree\n"),
    ("no final newline", b"one\ntwo", b"one\n2"),
    ("crlf", b"one\r\ntwo\r\nthree\r\n", b"one\r\n2\r\nthree\r\n"),
    ("utf-8 mark", b"\xef\xbb\xbfone\r\ntwo\r\n", b"\xef\xbb\xbfone\r\n2\r\n"),
    ("utf-16 le", b"\xff\xfe" + "one\r\ntwo\r\n".encode("utf-16-le"), b"\xff\xfe" + "one\r\n2\r\n".encode("utf-16-le")),
    ("utf-16 be", b"\xfe\xff" + "one\ntwo\n".encode("utf-16-be"), b"\xfe\xff" + "one\n2\n".encode("utf-16-be")),
    ("latin-1", b"one \xe9\ntwo\n", b"one \xe9\n2\n"),
    ("mixed", b"one\ntwo\r\nthree\n", b"one\n2\r\nthree\n"),
    ("mark before what is no utf-8", b"\xef\xbb\xbf\xe9\ntwo\n", b"\xef\xbb\xbf\xe9\n2\n"),
]


@pytest.mark.parametrize(("before", "after"), [dress[1:] for dress in DRESSES], ids=[dress[0] for dress in DRESSES])
async def test_every_other_byte_is_unchanged(context: Any, folder: Path, before: bytes, after: bytes):
    (folder / "a.txt").write_bytes(before)
    assert not (await edit(context, ("two", "2"))).error
    assert (folder / "a.txt").read_bytes() == after


async def test_line_endings_of_the_model_are_converted_to_those_of_the_file(context: Any, folder: Path):
    (folder / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    assert not (await edit(context, ("one\ntwo", "1\n1.5\n2"), ("three", "3\n4"))).error
    assert (folder / "a.txt").read_bytes() == b"1\r\n1.5\r\n2\r\n3\r\n4\r\n"


async def test_permissions_are_kept(context: Any, folder: Path):
    (folder / "a.txt").write_text("two")
    (folder / "a.txt").chmod(0o776)
    await edit(context, ("two", "2"))
    assert stat.S_IMODE((folder / "a.txt").stat().st_mode) == 0o776


async def test_edits_are_applied_in_order_and_reported(context: Any, folder: Path):
    (folder / "a.txt").write_text("one\n")
    output = await edit(context, ("one", "two"), ("two", "three"))
    assert output.text == "Edited a.txt: 2 replacements."
    assert (folder / "a.txt").read_text() == "three\n"
    view = EditFile().done(EditFileArguments(path="a.txt", edits=[Edit(old_text="one", new_text="x")]), output)
    assert (view.language, view.body) == ("diff", "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one\n+three")


async def test_all_edits_or_none(context: Any, folder: Path):
    (folder / "a.txt").write_text("one\ntwo\n")
    output = await edit(context, ("one", "1"), ("three", "3"))
    assert output.error
    assert "Edit 2 of 2: old_text was not found in the file" in output.text
    assert (folder / "a.txt").read_text() == "one\ntwo\n"
    assert [item.name for item in folder.iterdir()] == ["a.txt"]


async def test_ambiguous_text_is_rejected_with_its_lines(context: Any, folder: Path):
    (folder / "a.txt").write_text("x\n\nx\nx x\n")
    output = await edit(context, ("x", "y"))
    assert output.error
    assert "4 times, at lines 1, 3, 4, 4" in output.text
    assert (await edit(context, ("x", "y"), replace_all=True)).text == "Edited a.txt: 4 replacements."
    assert (folder / "a.txt").read_text() == "y\n\ny\ny y\n"


async def test_overlapping_occurrences_are_ambiguous(context: Any, folder: Path):
    (folder / "a.txt").write_text("aaa")
    assert "2 times" in (await edit(context, ("aa", "b"))).text


async def test_a_similar_line_is_shown(context: Any, folder: Path):
    (folder / "a.txt").write_text("def f():\n\treturn 1\n")
    assert "resembles line 2" in (await edit(context, ("    return 1", "    return 2"))).text


async def test_an_edit_without_effect_is_rejected(context: Any, folder: Path):
    (folder / "a.txt").write_text("one")
    assert "are identical" in (await edit(context, ("one", "one"))).text


async def test_characters_missing_in_the_encoding_are_rejected(context: Any, folder: Path):
    (folder / "a.txt").write_bytes(b"\xe9 two")
    output = await edit(context, ("two", "漢"))
    assert output.error
    assert "has the encoding latin-1, which can't represent '漢'" in output.text
    assert (folder / "a.txt").read_bytes() == b"\xe9 two"


@pytest.mark.parametrize(
    ("data", "words"), [(b"\0two", "binary"), (b"\xff\xfetwo", "not valid utf-16"), (b"two" + b" " * FILE_BYTES, "larger than")]
)
async def test_binary_files_are_rejected(context: Any, folder: Path, data: bytes, words: str):
    (folder / "a.txt").write_bytes(data)
    output = await edit(context, ("two", "2"))
    assert output.error
    assert words in output.text
    assert (folder / "a.txt").read_bytes() == data


@pytest.mark.parametrize("path", ["missing.txt", "../a.txt", "/etc/hosts", "."])
async def test_paths_outside_the_roots_are_rejected(context: Any, path: str):
    assert (await edit(context, ("a", "b"), path=path)).error


async def test_a_regular_expression_is_only_text(context: Any, folder: Path):
    (folder / "a.txt").write_text("a.c abc")
    await edit(context, ("a.c", r"\1\g<0>"))
    assert (folder / "a.txt").read_text() == r"\1\g<0> abc"


async def test_a_huge_line_is_edited(context: Any, folder: Path):
    (folder / "a.txt").write_text("x" * 5_000_000 + "needle" + "y" * 1000)
    assert not (await edit(context, ("needle", "thread"))).error
    assert (folder / "a.txt").read_text() == "x" * 5_000_000 + "thread" + "y" * 1000


PIECES = st.text(alphabet="ab \n\té漢", max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=PIECES,
    after=PIECES,
    new=PIECES.filter(lambda text: text != "NEEDLE"),
    newline=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
async def test_bytes_elsewhere_are_identical(context: Any, folder: Path, before: str, after: str, new: str, newline: str, encoding: str):
    def dressed(middle: str) -> bytes:
        return (before + "\n" + middle + "\n" + after).replace("\n", newline).encode(encoding)

    (folder / "a.txt").write_bytes(dressed("NEEDLE"))
    assert not (await edit(context, ("NEEDLE", new))).error
    assert (folder / "a.txt").read_bytes() == dressed(new)


def test_the_change_is_shown_before_it_is_made():
    view = EditFile().doing(EditFileArguments(path="a.txt", edits=[Edit(old_text="one", new_text="two")]))
    assert "-one\n+two" in view.body
