from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.cli_process import MootProcess, make
from e2e.pty_screen import CLEARS, PtyScreen
from moot.config.settings import Settings
from moot.engine import open_engine
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply
from moot.types.conversation import Conversation
from moot.types.ids import new_id
from moot.types.message import Message, text_part

HOSTILE = "evil \x1b[2J\x1b]0;title\x07 [bold]x[/bold] <b>y</b> \u202ez"


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    with ScriptedProcess([Reply(when="", text="Hello **you**.", times=0)]) as server:
        yield server


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 conversations in another folder, the newest three with distinctive titles."""
    home = tmp_path_factory.mktemp("seeded") / "home"

    async def seed() -> None:
        async with open_engine(Settings(home)) as engine:
            for title in [*(f"number {at}" for at in range(297)), "漢字 apples", HOSTILE, "pears and plums"]:
                made = await engine.store.conversations.create(
                    Conversation(new_id(), title=title, title_source="user", directory="/elsewhere", model="scripted@mine")
                )
                if title == "pears and plums":
                    first = await engine.store.conversations.add_message(
                        Message(new_id(), "user", (text_part("about pears"),), conversation=made.id)
                    )
                    await engine.store.conversations.add_message(
                        Message(new_id(), "assistant", (text_part("about plums"),), conversation=made.id, parent=first.id)
                    )

    anyio.run(seed)
    return home


@pytest.fixture
def moot(tmp_path: Path, seeded: Path, model: ScriptedProcess) -> Iterator[MootProcess]:
    process = make(tmp_path)
    shutil.copytree(seeded, process.home, dirs_exist_ok=True)
    (process.home / "config.yaml").write_text(model.config())
    yield process
    process.close()


def listed(moot: MootProcess, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(moot.run("chat", "list", "--json", *arguments).stdout)["data"]
    return found


@pytest.mark.slow
def test_the_list_filters_acts_and_returns_without_clearing_the_screen(moot: MootProcess) -> None:
    screen = PtyScreen(moot, "chat", "list", columns=100)
    screen.wait_for("all directories")
    screen.wait_for("pears and plums")
    screen.send("number 7")
    screen.wait_for("number 70")
    screen.send("\x15pears")  # Ctrl+U
    screen.wait_for("1 of 300")
    screen.send("\x12")  # Ctrl+R
    screen.wait_for("New title")
    screen.send("Fruit\n")
    screen.wait_for("renamed to Fruit")
    screen.wait_for("❯")
    screen.send("fruit")
    screen.wait_for("1 of ")
    screen.send("\x1b[C")  # right: the menu
    screen.wait_for("p use for --reply")
    screen.send("f")
    screen.wait_for("forked Fruit as")
    screen.wait_for("2 of ")
    screen.send("\x1b[C")
    screen.wait_for("p use for --reply")
    screen.send("d")
    screen.wait_for("[y/n]")
    screen.send("y\n")
    screen.wait_for("deleted Fruit;")
    screen.wait_for("1 of ")
    screen.send("\x03")
    assert screen.wait_exit() == 0
    assert not CLEARS.search(screen.raw)
    assert b"title\x07" not in screen.raw
    assert [item["title"] for item in listed(moot, "fruit")] != []
    assert len(listed(moot, "fruit", "--deleted")) == 1
    assert "❯" not in "\n".join(screen.lines)


def test_enter_continues_the_selected_conversation(moot: MootProcess) -> None:
    screen = PtyScreen(moot, "chat", "list", "apples")
    screen.wait_for("1 of 300")
    screen.send("\r")
    screen.wait_for("scripted@mine ·")
    screen.send("and more?\r")
    screen.wait_for("Hello you.")
    screen.send("\x04")
    assert screen.wait_exit() == 0
    assert listed(moot)[0]["title"] == "漢字 apples"


def test_messages_are_deleted_and_restored_and_the_previous_one_becomes_current(moot: MootProcess) -> None:
    screen = PtyScreen(moot, "chat", "list", "pears")
    screen.wait_for("1 of 300")
    screen.send("\x1b[C")
    screen.wait_for("m delete messages")
    screen.send("m")
    screen.wait_for("about plums")
    screen.send("\r")
    screen.wait_for("deleted message 2")
    screen.wait_for("deleted  ")
    screen.send("\r")
    screen.wait_for("restored message 2")
    screen.send("\x03")
    screen.wait_for("1 of 300")
    screen.send("\x15number 5\x1b[C")
    screen.wait_for("p use for --reply")
    screen.send("p")
    screen.wait_for("will continue number 5")
    screen.send("\x03")
    assert screen.wait_exit() == 0
    assert listed(moot)[0]["title"] == "number 5"


def test_a_resize_to_twenty_columns_leaves_a_clean_screen(moot: MootProcess) -> None:
    screen = PtyScreen(moot, "chat", "list", rows=12, columns=20)
    screen.wait_for("❯")
    screen.wait_for("Esc close")
    assert all(len(line) <= 20 for line in screen.lines)
    screen.send("apples")
    screen.wait_for("漢字 ap")
    screen.resize(16, 70)
    screen.wait_for("漢字 apples")
    screen.resize(9, 30)
    screen.wait_for("❯")
    screen.read(0.3)
    assert sum(line.startswith(">") for line in screen.lines) == 1
    screen.send("\x1b\x1b")
    assert screen.wait_exit() == 0


def test_titles_are_shown_verbatim(moot: MootProcess) -> None:
    screen = PtyScreen(moot, "chat", "list", "evil", columns=100)
    screen.wait_for("evil [bold]x[/bold] <b>y</b> <U+202E>z")
    screen.send("\x04")
    assert screen.wait_exit() == 0
    assert b"]0;" not in screen.raw
    assert not CLEARS.search(screen.raw)


def test_a_dumb_terminal_gets_numbers_and_a_question(moot: MootProcess) -> None:
    screen = PtyScreen(moot, "chat", "list", term="dumb", columns=100)
    screen.wait_for("q = close")
    screen.send("number 29\n")
    screen.wait_for("matching 'number 29'")
    screen.send("a2\n")
    screen.wait_for("archived number 29")
    screen.send("q\n")
    assert screen.wait_exit() == 0
    assert b"\x1b" not in screen.raw
    assert len(listed(moot, "--archived")) == 1


def test_without_colour_and_utf_8_output_is_plain_ascii(moot: MootProcess) -> None:
    moot.more |= {"NO_COLOR": "1", "LC_ALL": "C"}
    screen = PtyScreen(moot, "chat", "list", "apples", columns=100)
    screen.wait_for("> ")
    screen.wait_for("1 of 300")
    screen.send("\x03")
    assert screen.wait_exit() == 0
    assert screen.raw.isascii()
    assert not re.search(rb"\x1b\[([0-9]+;)*(3[0-8]|4[0-8]|9[0-7])(;[0-9]+)*m", screen.raw)


def test_scripts_and_plain_mode_get_a_table(moot: MootProcess) -> None:
    ended = moot.run("chat", "list", "--limit", "2")
    assert ended.stdout.startswith(b"NO  ID")
    screen = PtyScreen(moot, "chat", "list", "--plain", columns=120)
    screen.wait_for("pears and plums")
    assert screen.wait_exit() == 0
    assert b"filter" not in screen.raw


@pytest.mark.parametrize("name", ["claude-code", "Claude-Code", "claude"])
def test_imported_conversations_are_selected_by_their_program_or_format(tmp_path: Path, name: str) -> None:
    store = Path(__file__).parents[1] / "recorded" / "stores" / "claude-1h"
    with closing(make(tmp_path)) as moot:
        assert moot.run("import", str(store / ".claude")).returncode == 0
        assert len(listed(moot, "--agent", name)) == 2
        assert b"claude-code" in moot.run("chat", "list", "--plain").stdout
        assert b"scanned 2 conversations" in moot.run("scan", "--agent", name).stderr
        exported = moot.run("export", "--all", "--agent", name, "-f", "jsonl", "-o", str(tmp_path / "out"), "--json")
        assert len(json.loads(exported.stdout)["data"]) == 2
        found = json.loads(moot.run("search", f"agent:{name} role:user", "--json").stdout)["data"]
        assert len({one["conversation"] for one in found}) == 2


@pytest.mark.parametrize(
    "arguments", [("chat", "list"), ("scan",), ("export", "--all", "-f", "jsonl", "-o", "out")], ids=["list", "scan", "export"]
)
def test_an_agent_without_conversations_is_an_error_with_a_suggestion(moot: MootProcess, arguments: tuple[str, ...]) -> None:
    refused = moot.run(*arguments, "--agent", "defualt")
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert b"No conversation has the agent 'defualt'. Did you mean 'default'?" in refused.stderr


def test_an_unknown_machine_is_an_error(moot: MootProcess) -> None:
    refused = moot.run("chat", "list", "--host", "laptop")
    assert refused.returncode == 2 and b"No conversation has the host 'laptop'." in refused.stderr
    assert len(listed(moot, "--host", "local", "--limit", "3")) == 3


def test_a_model_is_suggested_by_a_part_of_its_name(moot: MootProcess) -> None:
    refused = moot.run("chat", "list", "--model", "SCRIPTED")
    assert refused.returncode == 2 and b"Did you mean 'scripted@mine'?" in refused.stderr
    assert len(listed(moot, "--model", "Scripted@mine", "--limit", "3")) == 3
