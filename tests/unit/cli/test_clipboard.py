import base64
import os
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest
from prompt_toolkit.completion import DummyCompleter
from prompt_toolkit.history import InMemoryHistory

from moot.cli.repl import programs
from moot.cli.repl.composer import Composer, mentions_of
from moot.cli.repl.programs import clipboard_image, copy_with_program
from moot.errors import UsageError

pytestmark = pytest.mark.anyio

MUCH = "a pipe holds less than this\n" * 10_000


@pytest.fixture
def environ(tmp_path: Path) -> Mapping[str, str]:
    """Environment of a desktop whose only clipboard program is written by the test."""
    return {"PATH": f"{tmp_path}:{os.environ['PATH']}", "WAYLAND_DISPLAY": "wayland-0"}


def program(folder: Path, script: str, name: str = "wl-copy") -> None:
    path = folder / name
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


PNG = b"\x89PNG\r\n\x1a\nrest"
JPEG = b"\xff\xd8\xffrest"


@pytest.mark.parametrize(
    ("name", "environ", "script", "found"),
    [
        ("wl-paste", {"WAYLAND_DISPLAY": "w"}, '[ "$3" = image/png ] && cat png', (PNG, "image/png")),
        ("wl-paste", {"WAYLAND_DISPLAY": "w"}, '[ "$3" = image/jpeg ] && cat jpeg', (JPEG, "image/jpeg")),
        ("xclip", {"DISPLAY": ":0"}, '[ "$4" = image/png ] && cat png', (PNG, "image/png")),
        ("pngpaste", {}, "cat png", (PNG, "image/png")),
        ("osascript", {}, f"echo '«data PNGf{PNG.hex().upper()}»'", (PNG, "image/png")),
        ("powershell.exe", {"WSL_DISTRO_NAME": "Debian"}, f"echo {base64.b64encode(PNG).decode()}", (PNG, "image/png")),
    ],
)
async def test_a_picture_is_read_with_the_program_of_the_system(
    tmp_path: Path, name: str, environ: Mapping[str, str], script: str, found: tuple[bytes, str]
) -> None:
    (tmp_path / "png").write_bytes(PNG)
    (tmp_path / "jpeg").write_bytes(JPEG)
    program(tmp_path, script, name)
    assert await clipboard_image({"PATH": f"{tmp_path}:/bin:/usr/bin", **environ}) == found


async def test_a_clipboard_without_a_picture_and_a_missing_program_are_reported(tmp_path: Path) -> None:
    environ = {"PATH": f"{tmp_path}:/bin", "WAYLAND_DISPLAY": "w"}
    with pytest.raises(UsageError, match="No program found that reads images"):
        await clipboard_image({"PATH": str(tmp_path), "WAYLAND_DISPLAY": "w"})
    program(tmp_path, "echo No suitable type of content copied >&2; exit 1", "wl-paste")
    with pytest.raises(UsageError, match="The clipboard contains no image"):
        await clipboard_image(environ)
    program(tmp_path, "echo some text", "wl-paste")
    with pytest.raises(UsageError, match="The clipboard contains no image"):
        await clipboard_image(environ)


def test_pasted_paths_of_files_become_references(tmp_path: Path) -> None:
    names = ["plain.png", "two words.png", "it's (1).txt", "漢字.md", "a#3", "sub/inner.py"]
    (tmp_path / "sub").mkdir()
    for name in names:
        (tmp_path / name).write_text("x")
    folder, elsewhere = str(tmp_path), str(tmp_path / "sub")
    assert mentions_of(f"{folder}/plain.png", folder) == "@plain.png "
    assert mentions_of(f"{folder}/two words.png\n", folder) == '@"two words.png" '
    assert mentions_of(f"'{folder}/two words.png' ", folder) == '@"two words.png" '
    assert mentions_of(f"{folder}/two\\ words.png ", folder) == '@"two words.png" '
    assert mentions_of(f"{folder}/it\\'s\\ \\(1\\).txt {folder}/sub/inner.py", folder) == '@"it\'s (1).txt" @sub/inner.py '
    assert mentions_of(f"file://{folder}/two%20words.png\r\nfile://localhost{folder}/a%233\r\n", folder) == '@"two words.png" @"a#3" '
    assert mentions_of(f"file://{folder}/a#3", folder) == '@"a#3" '
    assert mentions_of(f'"{folder}/plain.png"', elsewhere) == f"@{folder}/plain.png "
    assert mentions_of(f"{folder}/漢字.md", folder) == "@漢字.md "


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain.png",
        "{folder}/missing.png",
        "{folder}/plain.png and more",
        "see {folder}/plain.png",
        "{folder}",
        "'{folder}/plain.png",
        "file://other{folder}/plain.png",
        "file://[{folder}",
        "/etc/\0",
        "https://example.com{folder}/plain.png",
    ],
)
def test_other_pastes_stay_text(tmp_path: Path, text: str) -> None:
    (tmp_path / "plain.png").write_text("x")
    assert mentions_of(text.format(folder=tmp_path), str(tmp_path)) == ""


async def test_dropped_files_and_images_fit_into_the_text(tmp_path: Path) -> None:
    (tmp_path / "a b.txt").write_text("x")
    composer = Composer(history=InMemoryHistory(), completer=DummyCompleter(), directory=str(tmp_path))
    composer.insert_text("see")
    composer.paste(f"{tmp_path}/a\\ b.txt")
    assert composer.text == 'see @"a b.txt" '
    composer.replace("see @")
    composer.paste(f"{tmp_path}/a\\ b.txt")
    assert composer.text == 'see @"a b.txt" '
    composer.replace("!wc ")
    composer.paste(f"'{tmp_path}/a b.txt'")
    assert composer.text == f"!wc '{tmp_path}/a b.txt'"
    composer.replace("what is")
    composer.paste_image(PNG, "image/png")
    composer.paste_image(JPEG, "image/jpeg")
    assert composer.text == "what is [image 1] [image 2] "
    assert [part["filename"] for part in composer.images(composer.text)] == ["image-1.png", "image-2.jpeg"]
    composer.delete_before_cursor()
    composer.delete_before_cursor()
    assert composer.text == "what is [image 1] " and len(composer.images(composer.text)) == 1
    assert composer.take() == "what is [image 1] "
    for _ in range(18):
        composer.paste_image(PNG, "image/png")
    with pytest.raises(UsageError, match="At most 20 images"):
        composer.paste_image(PNG, "image/png")
