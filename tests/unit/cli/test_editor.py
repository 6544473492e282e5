from __future__ import annotations

import os
import shlex
import signal
import stat
import sys
from pathlib import Path

import anyio
import pytest

from moot.cli.console.output import Output
from moot.cli.terminal.prompts.editor import MAX_BYTES, edit_text, find_editor
from moot.errors import MootError, UsageError

pytestmark = pytest.mark.anyio


@pytest.fixture
def drafts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("MOOT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("VISUAL", raising=False)
    return tmp_path / "home" / "state" / "drafts"


@pytest.fixture
def edit_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, drafts: Path, capfd: pytest.CaptureFixture[str]):
    """Edit a text with a small Python program, which gets the file's path in `path`."""

    async def edit(program: str, text: str = "one\ntwo") -> str | None:
        script = tmp_path / "an editor.py"
        script.write_text(f"import os, signal, sys, time\nfrom pathlib import Path\npath = Path(sys.argv[-1])\n{program}\n")
        monkeypatch.setenv("EDITOR", f"{shlex.quote(sys.executable)} {shlex.quote(str(script))} --wait")
        return await edit_text(text, output=Output())

    return edit


def kept(drafts: Path) -> list[str]:
    return [path.read_text() for path in sorted(drafts.rglob("draft*"))]


async def test_the_text_is_returned_as_edited(edit_with, drafts: Path) -> None:
    assert await edit_with("path.write_text(path.read_text().replace('two', 'zwei\\n漢字'))") == "one\nzwei\n漢字"
    assert await edit_with("path.write_text('hello\\n')", "") == "hello"
    assert await edit_with("path.write_text('hello\\n\\n')", "ends so\n") == "hello\n\n"
    assert list(drafts.iterdir()) == []


async def test_a_real_sed_with_arguments_edits_it(monkeypatch: pytest.MonkeyPatch, drafts: Path) -> None:
    monkeypatch.setenv("EDITOR", "sed -i 's/two words/three words/'")
    assert await edit_text("one\ntwo words", output=Output()) == "one\nthree words"


async def test_no_one_else_can_read_the_file(edit_with, drafts: Path) -> None:
    modes = "f'{path.stat().st_mode & 0o777:o} {path.parent.stat().st_mode & 0o777:o}'"
    assert await edit_with(f"path.write_text({modes})") == "600 700"


async def test_an_editor_may_replace_the_file_and_leave_others_next_to_it(edit_with, drafts: Path) -> None:
    program = "new = path.with_name('new'); new.write_text('other'); path.with_name('.x.swp').write_text(''); new.replace(path)"
    assert await edit_with(program) == "other"
    assert list(drafts.iterdir()) == []


async def test_an_unchanged_text_returns_none_and_an_editor_that_did_not_wait_is_reported(
    edit_with, drafts: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert await edit_with("") is None
    assert "must wait" in capfd.readouterr().err
    assert await edit_with("time.sleep(1.1)") is None
    assert capfd.readouterr().err == ""
    assert list(drafts.iterdir()) == []


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        ("sys.exit(3)", "exited with status 3"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "was killed by SIGKILL"),
        ("path.write_bytes(path.read_bytes() + b'\\xff')", "is not UTF-8 (line 1, byte 8)"),
        (f"os.truncate(path, {MAX_BYTES + 1})", "larger than 10 MiB"),
    ],
)
async def test_the_text_of_a_failing_editor_is_saved_and_its_path_is_reported(edit_with, drafts: Path, ending: str, words: str) -> None:
    with pytest.raises(MootError) as raised:
        await edit_with(f"path.write_text('precious');{ending}")
    assert words in raised.value.message
    (path,) = drafts.rglob("draft.md")
    assert path.read_bytes().startswith(b"precious")
    assert str(path) in raised.value.message
    assert raised.value.fix == f"To continue, run moot run < {path}"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_an_editor_that_fails_with_nothing_changed_leaves_nothing(monkeypatch: pytest.MonkeyPatch, drafts: Path) -> None:
    monkeypatch.setenv("EDITOR", "false")
    with pytest.raises(MootError, match="'false' exited with status 1"):
        await edit_text("text", output=Output())
    assert list(drafts.iterdir()) == []


@pytest.mark.parametrize("program", ["path.unlink()", "path.unlink(); path.mkdir()", "path.unlink(); os.mkfifo(path)"])
async def test_an_editor_that_leaves_no_regular_file_is_an_error(edit_with, drafts: Path, program: str) -> None:
    with pytest.raises(MootError, match=r"(?i)the editor"):
        await edit_with(program)


async def test_the_text_survives_cancellation(edit_with, drafts: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(edit_with, "path.write_text('precious'); Path(path.parent / 'ready').touch(); time.sleep(60)")
        while not list(drafts.rglob("ready")):
            await anyio.sleep(0.02)
        group.cancel_scope.cancel()
    assert kept(drafts) == ["precious"]
    assert "the text is saved in" in capfd.readouterr().err


async def test_ctrl_c_belongs_to_the_editor(edit_with, drafts: Path) -> None:
    handler = signal.getsignal(signal.SIGINT)
    program = "signal.signal(signal.SIGINT, lambda *_: path.write_text('mine'))\nos.kill(os.getppid(), signal.SIGINT)\n"
    assert await edit_with(program + "os.kill(os.getpid(), signal.SIGINT); time.sleep(0.05)") == "mine"
    assert signal.getsignal(signal.SIGINT) is handler


async def test_output_of_the_editor_does_not_mix_with_data(edit_with, drafts: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert await edit_with("print('chatter'); path.write_text('x')") == "x"
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "chatter\n")


async def test_an_editor_that_cannot_be_started_is_reported_with_its_variable(monkeypatch: pytest.MonkeyPatch, drafts: Path) -> None:
    monkeypatch.setenv("EDITOR", "no-such-editor --wait")
    with pytest.raises(UsageError, match="Cannot start the editor 'no-such-editor' from EDITOR: No such file") as raised:
        await edit_text("text", output=Output())
    assert "export EDITOR=" in raised.value.fix
    assert list(drafts.iterdir()) == []


async def test_a_home_that_is_not_writable_is_reported(monkeypatch: pytest.MonkeyPatch, drafts: Path) -> None:
    monkeypatch.setenv("EDITOR", "true")
    drafts.parent.mkdir(parents=True)
    drafts.write_text("a file")
    with pytest.raises(MootError, match="Cannot write a file for the editor"):
        await edit_text("text", output=Output())


def test_visual_comes_first_except_on_a_dumb_terminal() -> None:
    both = {"VISUAL": "code --wait", "EDITOR": "ed -p '> '"}
    assert find_editor(both, attended=True).command == ("code", "--wait")
    assert find_editor({**both, "TERM": "dumb"}, attended=True).command == ("ed", "-p", "> ")
    assert find_editor({"VISUAL": " ", "EDITOR": "ed"}, attended=False).named_by == "EDITOR"


def test_without_variables_a_default_editor_is_used_only_at_a_terminal(tmp_path: Path) -> None:
    program = tmp_path / "vi"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert find_editor({"PATH": str(tmp_path)}, attended=True).command == (str(program),)
    with pytest.raises(UsageError, match="VISUAL and EDITOR"):
        find_editor({"PATH": str(tmp_path)}, attended=False)
    with pytest.raises(UsageError, match="neither nano nor vi"):
        find_editor({"PATH": os.devnull}, attended=True)


def test_an_invalid_command_in_a_variable_is_reported() -> None:
    with pytest.raises(UsageError, match="EDITOR is not a valid command"):
        find_editor({"EDITOR": "vi 'unclosed"}, attended=True)
