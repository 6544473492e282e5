"""Rules added to a configuration file and removed from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot.config.changes import with_rules, without_rule
from moot.config.loader import load
from moot.config.settings import Rule
from moot.errors import ConfigError

RULE = {"tool": "shell", "match": "git status *", "action": "allow"}


def loaded(path: Path) -> list[tuple[str, str, str]]:
    rules: tuple[Rule, ...] = load(home=path.parent, environ={}, directory=path.parent).settings.permissions.rules
    return [(rule.tool, rule.action, rule.match) for rule in rules]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a remark\n",
        "models: {main: demo}\n",
        "permissions:\n  mode: ask\n# behind\nlimits: {steps: 3}  # three\n",
        "permissions:\n    rules:\n        - {tool: shell, match: 'ls', action: allow}  # list\n        # more\n# behind\nlimits: {}\n",
        "permissions: {mode: ask, rules: []}\n",
        'permissions:\n  rules:\n  - tool: shell\n    match: "ls"\n    action: allow\n# behind\n',
    ],
)
def test_adding_a_rule_keeps_everything_else(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    before = loaded(path)
    path.write_bytes(with_rules(path, [RULE], {}))
    after = path.read_text()
    for line in text.splitlines():
        if "#" in line:
            assert line[line.index("#") :] in after
    assert sorted(loaded(path)) == sorted([*before, ("shell", "allow", "git status *")])
    assert path.read_bytes() == with_rules(path, [RULE], {}), "the same rule twice is one"
    at = loaded(path).index(("shell", "allow", "git status *"))
    path.write_bytes(without_rule(path, at, {}))
    assert loaded(path) == before


def test_a_rule_that_looks_like_a_variable_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="variable"):
        with_rules(tmp_path / "config.yaml", [{**RULE, "match": "echo ${HOME}"}], {})


@pytest.mark.parametrize("match", ["a: b", "- x", "'quoted", '"', "# x", "[*].py", "*", "true", "1", "a\\b", "caf\u00e9 *", "{x}"])
def test_every_pattern_is_read_again_as_it_was_written(tmp_path: Path, match: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(with_rules(path, [{**RULE, "match": match}], {}))
    assert loaded(path) == [("shell", "allow", match)]
