from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moot.tools.builtin import read_file
from moot.tools.builtin.read_file import PICTURE_BYTES, ReadFile, ReadFileArguments
from moot.types.limits import TOOL_OUTPUT_CHARACTERS
from moot.types.tool import ToolOutput

pytestmark = pytest.mark.anyio


async def read(context: Any, path: str, **more: Any) -> ToolOutput:
    return await ReadFile().run(ReadFileArguments(path=path, **more), context)


async def test_lines_come_numbered(context: Any, folder: Path):
    (folder / "a.txt").write_text("one\ntwo\nthree")
    assert await read(context, "a.txt") == ToolOutput("1\tone\n2\ttwo\n3\tthree")


async def test_a_range_shows_its_position_and_how_to_continue(context: Any, folder: Path):
    (folder / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 13)))
    output = await read(context, "a.txt", start_line=3, line_count=2)
    assert output.text == "3\tline 3\n4\tline 4\n(lines 3-4 of 12; continue with start_line=5)"
    assert (await read(context, "a.txt", start_line=11)).text == "11\tline 11\n12\tline 12\n(lines 11-12 of 12)"


async def test_a_start_past_the_end_is_an_error_that_shows_the_length(context: Any, folder: Path):
    (folder / "a.txt").write_text("one\n")
    output = await read(context, "a.txt", start_line=5)
    assert output.error
    assert "has only 1 line" in output.text


async def test_an_empty_file_is_reported_as_empty(context: Any, folder: Path):
    (folder / "a.txt").touch()
    assert await read(context, "a.txt") == ToolOutput("a.txt is empty.", empty=True)


@pytest.mark.parametrize(
    ("data", "text", "note"),
    [
        ("\ufeffgrün\r\nx".encode(), "1\tgrün\n2\tx", "UTF-8 with a byte order mark"),
        ("grün\n".encode("utf-16"), "1\tgrün", "UTF-16-LE with a byte order mark"),
        (b"\xfe\xff" + "grün\n".encode("utf-16-be"), "1\tgrün", "UTF-16-BE with a byte order mark"),
        ("grün\n".encode("latin-1"), "1\tgrün", "not UTF-8; read as Latin-1"),
        ("grün\r\nblau\r\n".encode(), "1\tgrün\n2\tblau", ""),
    ],
)
async def test_encodings_are_detected_and_reported(context: Any, folder: Path, data: bytes, text: str, note: str):
    (folder / "a.txt").write_bytes(data)
    assert (await read(context, "a.txt")).text == (f"{text}\n({note})" if note else text)


async def test_a_character_cut_by_the_first_megabyte_is_still_utf8(context: Any, folder: Path):
    (folder / "a.txt").write_bytes(b"x\n" * ((1 << 19) - 1) + b"x" + "é\n".encode())
    assert "Latin" not in (await read(context, "a.txt", start_line=(1 << 19))).text


async def test_a_binary_file_is_not_shown(context: Any, folder: Path):
    (folder / "a.bin").write_bytes(b"\x7fELF\0\0\0")
    output = await read(context, "a.bin")
    assert output.error
    assert "binary file of 7 bytes" in output.text


PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 100


async def test_a_picture_becomes_a_file_part(context: Any, folder: Path):
    (folder / "a.png").write_bytes(PNG)
    output = await read(context, "a.png")
    (part,) = output.files
    assert part["mediaType"] == "image/png"
    assert context.blobs.kept[str(part["url"]).removeprefix("blob:")] == PNG


async def test_a_picture_over_the_limit_is_rejected(context: Any, folder: Path):
    with (folder / "a.png").open("wb") as stream:
        stream.write(PNG)
        stream.truncate(PICTURE_BYTES + 1)
    output = await read(context, "a.png")
    assert output.error
    assert not output.files


async def test_a_long_output_is_paged_to_its_end(context: Any):
    whole = "".join(f"{n} {'x' * 50}\n" for n in range(3000))
    blob = await context.blobs.put(whole.encode())
    start, seen = 1, ""
    while True:
        output = await read(context, f"blob:{blob.sha256}", start_line=start)
        assert len(output.text) <= TOOL_OUTPUT_CHARACTERS
        lines, _, closing = output.text.rpartition("\n")
        seen += "".join(line.partition("\t")[2] + "\n" for line in lines.split("\n"))
        if "continue with" not in closing:
            break
        start = int(closing.rpartition("=")[2].rstrip(")"))
    assert seen == whole


async def test_an_unknown_blob_is_a_failure(context: Any):
    assert (await read(context, "blob:" + "0" * 64)).error


async def test_a_huge_line_is_paged_by_characters(context: Any, folder: Path):
    whole = "".join(str(n % 10) for n in range(100_000))
    (folder / "a.txt").write_text(f"first\n{whole}\nlast\n")
    output = await read(context, "a.txt")
    assert "3\tlast" in output.text
    assert "it has 100000 characters" in output.text
    begin, seen = 1, whole[:1]
    while "start_character=" in (text := (await read(context, "a.txt", start_line=2, line_count=1, start_character=begin)).text):
        seen += text.partition("\t")[2].partition(" … ")[0]
        begin = int(text.rpartition("start_character=")[2].partition(")")[0])
        assert len(text) <= TOOL_OUTPUT_CHARACTERS
    assert seen + text.partition("\t")[2].partition("\n")[0] == whole


async def test_a_file_without_end_is_counted_only_so_far(context: Any, folder: Path):
    with (folder / "big.txt").open("wb") as stream:
        stream.write(b"line\n" * 10)
        stream.seek(8_000)
        stream.write(b"x" * 1000)
        stream.truncate(10 << 30)
    output = await read(context, "big.txt")
    assert output.error
    with (folder / "big.txt").open("wb") as stream:
        stream.write((b"y" * 99 + b"\n") * (read_file.SCANNED_CHARACTERS // 100 + 10))
    output = await read(context, "big.txt", line_count=3)
    assert "of more than 200000" in output.text


@pytest.mark.parametrize("path", ["missing.txt", "../outside.txt", "/etc/passwd", "nul\0", "~/x", ".", "x" * 5000])
async def test_unreadable_files_are_errors_not_exceptions(context: Any, folder: Path, path: str):
    (folder.parent / "outside.txt").write_text("secret")
    output = await read(context, path)
    assert output.error
    assert "secret" not in output.text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.binary(max_size=300) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")),
    start=st.integers(1, 5),
    character=st.integers(0, 9),
)
async def test_arbitrary_bytes_never_raise(context: Any, folder: Path, data: bytes, start: int, character: int):
    (folder / "any").write_bytes(data)
    output = await read(context, "any", start_line=start, start_character=character)
    assert output.text


def test_views_name_the_file_and_the_range():
    arguments = ReadFileArguments(path="a.py", start_line=3, line_count=2)
    assert (ReadFile().doing(arguments).title, ReadFile().doing(arguments).detail) == ("Read a.py", "lines 3-4")
    assert ReadFile().done(arguments, ToolOutput("3\tx")).body == "3\tx"
