from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import MootProcess, make
from e2e.pty_screen import CLEARS, PtyScreen
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    with ScriptedProcess([Reply(when="plums", text="Plums it is.", times=0), Reply(when="", text="Hello **you**.", times=0)]) as server:
        yield server


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, model: ScriptedProcess) -> Path:
    """A home with one conversation."""
    process = make(tmp_path_factory.mktemp("begun"), model.config())
    assert process.run("run", "about apples").returncode == 0
    assert process.run("run", "-c", "about pears").returncode == 0
    return process.home


@pytest.fixture
def moot(tmp_path: Path, begun: Path) -> Iterator[MootProcess]:
    process = make(tmp_path)
    shutil.copytree(begun, process.home, dirs_exist_ok=True)
    yield process
    process.close()


def shown(moot: MootProcess) -> list[str]:
    data = json.loads(moot.run("chat", "show", "1", "--json").stdout)["data"]
    return ["".join(part.get("text", "") for part in message["parts"]) for message in data]


def nodes(moot: MootProcess) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(moot.run("chat", "tree", "1", "--json").stdout)["data"]
    return found


def editor(moot: MootProcess, program: str) -> str:
    """A command that applies this to the file at `path`."""
    script = moot.work / "editor.py"
    script.write_text(f"import os, signal, sys, time\nfrom pathlib import Path\npath = Path(sys.argv[1])\n{program}\n")
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(script))}"


def test_an_edited_prompt_has_the_files_that_it_names_once(moot: MootProcess) -> None:
    (moot.work / "notes.txt").write_text("one")
    assert moot.run("run", "Read @notes.txt").returncode == 0
    (moot.work / "notes.txt").write_text("two")
    moot.more["EDITOR"] = "sed -i s/Read/Explain/"
    assert moot.run("chat", "edit", "1", "1").returncode == 0
    file, text = json.loads(moot.run("chat", "show", "1", "--json").stdout)["data"][0]["parts"]
    assert (file["url"], text["text"]) == ("data:text/plain;base64,dHdv", "Explain @notes.txt")


def test_an_edited_message_is_a_new_branch_and_answered(moot: MootProcess) -> None:
    moot.more["EDITOR"] = "sed -i s/pears/plums/"
    ended = moot.run("chat", "edit", "1", "3")
    assert (ended.returncode, ended.stdout) == (0, b"Plums it is.\n"), ended.stderr
    assert shown(moot) == ["about apples", "Hello **you**.", "about plums", "Plums it is."]
    assert [node["line"] for node in nodes(moot) if not node["shown"]] == ["about pears", "Hello **you**."]


def test_an_edited_answer_is_stored_without_a_run(moot: MootProcess) -> None:
    moot.more["EDITOR"] = "sed -i s/you/nobody/"
    assert moot.run("chat", "edit", "1", "4").returncode == 0
    assert shown(moot)[-1] == "Hello **nobody**."
    moot.more["EDITOR"] = "sed -i s/pears/plums/"
    assert moot.run("chat", "edit", "1", "3", "--no-answer").returncode == 0
    assert shown(moot) == ["about apples", "Hello **you**.", "about plums"]


def test_a_whole_conversation_is_edited_from_a_script(moot: MootProcess) -> None:
    moot.more["EDITOR"] = "sed -i s/a/b/"  # it also changes the markers
    ended = moot.run("chat", "edit", "1", "--all")
    assert ended.returncode == 0, ended.stderr
    assert shown(moot) == ["bbout apples", "Hello **you**.", "bbout pears", "Hello **you**."]
    moot.more["EDITOR"] = editor(moot, "path.write_text(path.read_text() + '<!-- moot user -->\\nand plums?\\n')")
    assert moot.run("chat", "edit", "1", "--all").stdout == b"Plums it is.\n"
    assert shown(moot)[-2:] == ["and plums?", "Plums it is."]
    assert sum(node["shown"] for node in nodes(moot)) == 6


def test_an_invalid_text_is_saved_and_can_be_edited_again(moot: MootProcess) -> None:
    moot.more["EDITOR"] = editor(moot, "path.write_text(path.read_text().replace('about pears', 'about plums\\n<!-- moot oops -->'))")
    before = nodes(moot)
    ended = moot.run("chat", "edit", "1", "--all")
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert b"is not a valid marker" in ended.stderr
    assert nodes(moot) == before
    (draft,) = moot.home.rglob("draft.md")
    assert f"--all --from {draft}".encode() in ended.stderr
    moot.more["EDITOR"] = "sed -i /oops/d"
    assert moot.run("chat", "edit", "1", "--all", "--from", str(draft)).returncode == 0
    assert "about plums" in shown(moot)


@pytest.mark.parametrize("ending", ["sys.exit(1)", "os.kill(os.getpid(), signal.SIGKILL)", "path.write_bytes(b'about plums \\xff')"])
def test_an_editor_that_fails_changes_nothing_and_loses_nothing(moot: MootProcess, ending: str) -> None:
    moot.more["EDITOR"] = editor(moot, f"path.write_text('about plums')\n{ending}")
    ended = moot.run("chat", "edit", "1", "3")
    assert ended.returncode == 1
    (draft,) = moot.home.rglob("draft.md")
    assert draft.read_bytes().startswith(b"about plums")
    assert f"--from {draft}".encode() in ended.stderr
    assert len(nodes(moot)) == 4


def test_an_unchanged_text_makes_no_branch_and_a_missing_message_is_an_error(moot: MootProcess) -> None:
    moot.more["EDITOR"] = "true"
    for arguments in (["1", "3"], ["1", "--all"]):
        assert moot.run("chat", "edit", *arguments).returncode == 0
    assert len(nodes(moot)) == 4
    assert b"No message given" in moot.run("chat", "edit", "1").stderr
    assert moot.run("chat", "edit", "1", "3", "--all").returncode == 2
    moot.more["EDITOR"] = ""
    ended = moot.run("chat", "edit", "1", "3")
    assert (ended.returncode, b"VISUAL and EDITOR" in ended.stderr) == (2, True)


def test_on_a_terminal_the_message_is_picked_and_the_editor_has_the_keyboard(moot: MootProcess) -> None:
    program = "print('in the editor', flush=True)\nline = input()\npath.write_text('about plums, ' + line)"
    moot.more["EDITOR"] = editor(moot, program)
    screen = PtyScreen(moot, "chat", "edit", "1", columns=300)
    screen.wait_for("about pears")
    screen.send("pears\r")
    screen.wait_for("in the editor")
    screen.send("typed\x03 here\n")  # Ctrl+C goes to the editor: Python exits without writing
    screen.wait_for("Nothing was changed")
    assert screen.wait_exit() == 1
    assert not CLEARS.search(screen.raw)
    screen = PtyScreen(moot, "chat", "edit", "1", columns=60)
    screen.wait_for("about pears")
    screen.send("\r")
    screen.wait_for("in the editor")
    screen.send("typed here\n")
    screen.wait_for("Plums it is.")
    assert screen.wait_exit() == 0
    assert shown(moot)[2] == "about plums, typed here"
