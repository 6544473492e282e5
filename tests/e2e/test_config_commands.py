from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e.cli_process import MootProcess, make
from e2e.pty_screen import PtyScreen

TEXT = """\
# mine
limits:
  steps: 20   # enough
"""

Edit = Callable[[str], PtyScreen]


@pytest.fixture
def moot(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MootProcess]:
    process = make(tmp_path, TEXT)
    yield process
    process.close()


@pytest.fixture
def edit(moot: MootProcess) -> Iterator[Edit]:
    screens: list[PtyScreen] = []

    def begin(editor: str) -> PtyScreen:
        moot.more["EDITOR"] = editor
        screens.append(PtyScreen(moot, "config", "edit", columns=300))
        return screens[-1]

    yield begin
    for screen in screens:
        screen.close()


def text(moot: MootProcess) -> str:
    return (moot.home / "config.yaml").read_text()


def test_changes_made_in_an_editor_are_applied(moot: MootProcess, edit: Edit) -> None:
    screen = edit("sed -i s/20/21/")
    screen.wait_for("saved")
    assert screen.wait_exit() == 0
    assert text(moot) == TEXT.replace("20", "21")
    assert json.loads(moot.run("config", "get", "limits.steps", "--json").stdout)["value"] == 21
    assert stat.S_IMODE((moot.home / "config.yaml").stat().st_mode) == 0o600


def test_errors_made_in_an_editor_are_reported_and_can_be_fixed_or_kept(moot: MootProcess, edit: Edit) -> None:
    screen = edit("sed -i s/steps:/steps/")
    screen.wait_for("Edit it again?")
    assert "config.yaml:3" in screen.text
    screen.send("y\r")
    screen.wait_for("nothing was changed")  # it is already broken
    screen.wait_for("got 'steps 20'.\nEdit it again? [y/n]:\n")
    screen.send("n\r")
    screen.wait_for("was not changed")
    assert screen.wait_exit() == 2
    assert text(moot) == TEXT


def test_an_editor_that_fails_changes_nothing(moot: MootProcess, edit: Edit) -> None:
    screen = edit("false")
    screen.wait_exit()
    assert text(moot) == TEXT
    assert "saved" not in screen.text
    assert "Traceback" not in screen.text


def test_an_unchanged_file_is_reported(moot: MootProcess, edit: Edit) -> None:
    screen = edit("true")
    screen.wait_for("nothing was changed")
    assert screen.wait_exit() == 0
    assert text(moot) == TEXT


def test_set_keeps_comments_and_get_prints_the_effective_value(moot: MootProcess) -> None:
    assert moot.run("config", "set", "limits.steps", "30").returncode == 0
    assert text(moot) == TEXT.replace("20", "30")
    assert moot.run("config", "get", "limits.steps").stdout == b"30\n"
    ended = moot.run("config", "set", "models.main", "a@ollama", "--json")
    assert json.loads(ended.stdout)["origin"].startswith("user")
    assert moot.run("config", "get", "models.main").stdout == b"a@ollama\n"
    assert "# enough" in text(moot)


def test_invalid_values_are_not_set(moot: MootProcess) -> None:
    for key, value in (("limits.steps", "many"), ("limits.stepz", "3"), ("providers.mine", "x")):
        ended = moot.run("config", "set", key, value)
        assert (ended.returncode, ended.stdout) == (2, b""), key
        assert ended.stderr.startswith(b"moot: ")
    assert text(moot) == TEXT


def test_an_overriding_layer_is_named(moot: MootProcess) -> None:
    moot.more["MOOT_LIMITS__STEPS"] = "5"
    ended = moot.run("config", "set", "limits.steps", "30")
    assert b"environment MOOT_LIMITS__STEPS, which overrides it" in ended.stderr
    assert moot.run("config", "get", "limits.steps").stdout == b"5\n"


def test_a_secret_is_set_and_never_shown(moot: MootProcess) -> None:
    moot.run("config", "set", "providers.openai.api_key", "sk-canary-0123456789abcdef")
    shown = moot.run("config", "get", "providers.openai.api_key")
    assert b"canary" not in shown.stdout + shown.stderr
    assert "sk-canary-0123456789abcdef" in text(moot)


@pytest.mark.parametrize("kind", ["tools", "providers", "models"])
def test_lists_are_paginated_without_gaps(moot: MootProcess, kind: str) -> None:
    whole = json.loads(moot.run(kind, "list", "--limit", "200", "--json").stdout)
    assert whole["next_cursor"] is None
    half = max(len(whole["data"]) // 2, 1)
    page = json.loads(moot.run(kind, "list", "--limit", str(half), "--json").stdout)
    rest: list[object] = []
    if page["next_cursor"] is not None:
        rest = json.loads(moot.run(kind, "list", "--limit", "200", "--cursor", page["next_cursor"], "--json").stdout)["data"]
    assert [*page["data"], *rest] == whole["data"]
    assert moot.run(kind, "list", "--cursor", "nothing-such").returncode == 2


def test_the_doctor_shows_the_effective_key_and_other_processes(moot: MootProcess) -> None:
    key = "sk-proj-canary-0123456789abWXYZ"
    moot.more["OPENAI_API_KEY"] = "sk-proj-other-0123456789"
    (moot.home / "config.yaml").write_text(f"providers: {{openai: {{api_key: {key}}}, anthropic: {{base_url: 'http://127.0.0.1:9'}}}}\n")
    moot.more["ANTHROPIC_API_KEY"] = "sk-ant-another-0123456789"
    ended = moot.run("doctor", "--json")
    found = {item["name"]: item for item in json.loads(ended.stdout)["data"]}
    assert "…WXYZ from user" in found["keys"]["detail"]
    assert "not OPENAI_API_KEY" in found["keys"]["detail"]
    assert found["keys"]["state"] == "note"
    assert "ANTHROPIC_API_KEY is not sent" in found["keys"]["detail"]
    assert key.encode() not in ended.stdout
    assert {"clock", "disk", "processes", "terminal"} <= found.keys()
