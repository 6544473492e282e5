"""`moot permissions`: list rules, test them, and remove them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from e2e.cli_process import MootProcess, make

CONFIG = """# mine
permissions:
  rules:
    - {tool: shell, match: "git status *", action: allow}  # looking
    - {tool: shell, match: "rm *", action: deny}
"""


@pytest.fixture
def moot(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> MootProcess:
    return make(tmp_path, tmp_path_factory.mktemp("pycache"), CONFIG)


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
