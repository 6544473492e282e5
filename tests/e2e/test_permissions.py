"""`moot permissions`: list rules, test, suggest, add and remove them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import MootProcess, make
from moot.testing.script import Reply, ToolCall
from moot.types.approval import Answer

CONFIG = """# mine
permissions:
  rules:
    - {tool: shell, match: "git status *", action: allow}  # looking
    - {tool: shell, match: "rm *", action: deny}
"""


@pytest.fixture
def moot(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> MootProcess:
    return make(tmp_path, CONFIG)


def test_a_command_line_is_explained_part_by_part_with_the_source_of_each_rule(moot: MootProcess) -> None:
    said = moot.run("permissions", "test", "shell", "git status -s && sudo rm x && ls").stdout.decode()
    lines = said.splitlines()
    assert lines[0].startswith("deny: the rule shell 'rm *' says deny, user ")
    assert f"{moot.home}/config.yaml:5:7" in lines[0]
    assert lines[1].startswith("  allow: git status -s") and "config.yaml:4:7" in lines[1]
    assert any(line.startswith("  ask: ls  (mode ask)") for line in lines)
    told = json.loads(moot.run("permissions", "test", "shell", "git status -s", "--json").stdout)
    assert (told["action"], told["parts"][0]["text"]) == ("allow", "git status -s")


def test_a_rule_is_listed_and_removed_and_comments_stay(moot: MootProcess) -> None:
    listed = json.loads(moot.run("permissions", "list", "--json").stdout)["data"]
    assert [(rule["tool"], rule["match"], rule["action"]) for rule in listed] == [
        ("shell", "git status *", "allow"),
        ("shell", "rm *", "deny"),
    ]
    assert moot.run("permissions", "remove", "shell", "rm *").returncode == 0
    text = (moot.home / "config.yaml").read_text()
    assert "rm *" not in text and "# mine" in text and "# looking" in text
    missing = moot.run("permissions", "remove", "shell", "rm *")
    assert (missing.returncode, b"No rule for shell" in missing.stderr) == (2, True)


def shell(line: str, **more: str) -> ToolCall:
    return ToolCall("shell", {"command": line, **more})


async def answered(stage: Callable[..., Any], allowed: Sequence[ToolCall], denied: Sequence[ToolCall]) -> None:
    """Run a conversation in which a person allows the first calls and denies the others."""
    answers = iter([*[True] * len(allowed), *[False] * len(denied)])
    async with stage([Reply(tool_calls=[*allowed, *denied]), Reply(text="done")], mode="ask") as place:
        run, _ = await place.ask("go", lambda _: Answer(next(answers)))
        assert run.status == "finished" and next(answers, None) is None


@pytest.mark.anyio
async def test_rules_are_suggested_from_stored_answers_and_added_by_the_printed_command(
    stage: Callable[..., Any], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    allowed = [*map(shell, ["echo a", "echo b", "echo b", *["frobnicate 'x y'"] * 3, *["true"] * 3])]
    await answered(stage, [*allowed, *[shell("uname -s", access="network")] * 3], [shell("true")])
    moot = MootProcess(tmp_path / "home", tmp_path / "work")
    before = moot.run("permissions", "list").stdout
    data = json.loads(moot.run("permissions", "suggest", "--json").stdout)["data"]
    assert [(each["tool"], each["match"], each["allowed"], each["example"]) for each in data] == [
        ("shell", "echo *", 3, "echo b"),
        ("shell", "frobnicate 'x y'", 3, "frobnicate 'x y'"),
    ]
    printed = moot.run("permissions", "suggest").stdout.decode().splitlines()
    assert printed[0].split() == ["TOOL", "ALLOWED", "MATCH", "EXAMPLE"]
    assert printed[1].split() == ["shell", "3", "echo", "*", "echo", "b"]
    assert [line.strip() for line in printed[-2:]] == [each["command"] for each in data]
    assert moot.run("permissions", "list").stdout == before, "nothing is changed"
    for each in data:
        assert moot.run(*shlex.split(each["command"])[1:]).returncode == 0
    assert b"allow: the rule shell 'echo *'" in moot.run("permissions", "test", "shell", "echo c").stdout
    assert moot.run("permissions", "suggest").stdout.startswith(b"No suggestions")
