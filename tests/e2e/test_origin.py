"""Imported conversations show their origin in every list and above their messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cli_process import MootProcess, make
from e2e.pty_screen import PtyScreen
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply

TALK = "# Notes on bees\n\n## User\n\nHow many?\n\n## Assistant\n\nForty thousand.\n"


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    with ScriptedProcess([Reply(when="", text="Said here.", times=0)]) as server:
        yield server


@pytest.fixture
def moot(tmp_path: Path, model: ScriptedProcess) -> Iterator[MootProcess]:
    process = make(tmp_path, model.config())
    assert process.run("run", "begun here").returncode == 0
    source = tmp_path / "bees.md"
    source.write_text(TALK)
    assert process.run("import", str(source)).returncode == 0
    yield process
    process.close()


def test_lists_and_heads_name_the_format_and_the_file(moot: MootProcess) -> None:
    rows = {line.split("  ")[-1].strip(): line for line in moot.run("chat", "list", "--plain").stdout.decode().splitlines()}
    assert "FROM" in rows["TITLE"] and " md " in rows["Notes on bees"] and " - " in rows["begun here"]
    found = json.loads(moot.run("chat", "list", "--json", "md").stdout)["data"]
    assert [one["title"] for one in found] == ["Notes on bees"]
    for arguments in ((), ("--at", "1")):
        said = moot.run("chat", "show", "Notes on bees", *arguments).stderr.decode().splitlines()
        assert said[1].startswith("from md, ") and said[1].endswith("bees.md")
    assert "from " not in moot.run("chat", "show", "begun here").stderr.decode()


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_the_list_and_the_terminal_show_the_origin(moot: MootProcess, term: str) -> None:
    if term != "dumb":
        screen = PtyScreen(moot, "chat", "list")
        screen.wait_for("begun here")
        screen.send("\t")  # an imported conversation whose source names no folder is only in the list of all directories
        screen.wait_for("Notes on bees")
        screen.wait_for("FROM")
        row = next(line for line in screen.lines if "Notes on bees" in line)
        assert row.split()[-2:] == ["md", "-"]
        screen.send("md bees\r")
    else:
        screen = PtyScreen(moot, "chat", "continue", "Notes on bees", term=term)
    screen.wait_for("Forty thousand.")
    (line,) = [line for line in screen.lines if "from md, " in line]
    assert screen.lines.index(line) < next(at for at, text in enumerate(screen.lines) if "Forty thousand." in text)
    screen.send("/status\r")
    screen.wait_for("origin        md")
    if term != "dumb":
        screen.send("/continue\r")
        screen.wait_for("begun here")
        screen.send("\x03")
    screen.send("\x04")
    assert screen.wait_exit() == 0


@pytest.mark.parametrize("there", [True, False])
def test_a_purge_names_the_source_of_an_import_if_it_exists(moot: MootProcess, tmp_path: Path, there: bool) -> None:
    source = tmp_path / "bees.md"
    if not there:
        source.unlink()
    done = moot.run("purge", "Notes on bees", "--yes")
    line = f"left          {source} (the source of an import; moot doesn't delete it)"
    assert done.returncode == 0 and (line in done.stdout.decode().splitlines()) == there
    assert source.exists() == there
