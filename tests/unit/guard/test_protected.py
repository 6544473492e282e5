"""Protected files ask in every mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot.config.settings import Permissions, Rule
from moot.runtime.approvals.policy import decide
from moot.tools.builtin.file_changes import EditFile, WriteFile
from moot.tools.builtin.read_file import ReadFile
from moot.tools.builtin.shell import Shell
from moot.types.agent import Mode
from moot.types.approval import Grant

HERE = "/home/me/app"
PROTECTED = [
    ".agents/skills/x/SKILL.md",
    ".talkcody/skills/x/SKILL.md",
    *(".git/config", ".git/hooks/pre-commit", "sub/.git/config", ".moot/config.yaml", ".claude/settings.json", ".codex/config.toml"),
    *(".vscode/tasks.json", ".idea/workspace.xml", ".envrc", "AGENTS.md", "docs/agents.md", "CLAUDE.md", "GEMINI.md", "x/../.git/config"),
    *("/home/me/.bashrc", "/home/me/.config/fish/config.fish", ".GIT/config", "/home/me/moot/config.yaml", "./.git"),
]


def on(path: str, *rules: Rule, mode: Mode, grants: tuple[Grant, ...] = ()) -> str:
    permissions = Permissions(rules=rules, home="/home/me/moot")
    return decide(permissions, mode, WriteFile(), path, directory=HERE, grants=grants).action


@pytest.mark.parametrize("mode", ["ask", "edits", "auto"])
def test_a_protected_file_asks_in_every_mode(mode: Mode) -> None:
    assert {path: on(path, mode=mode) for path in PROTECTED} == dict.fromkeys(PROTECTED, "ask")
    wide = (Rule("write_file", "allow"), Rule("*", "allow", "*.json"), Rule("write_file", "allow", ".git/*"))
    assert {path: on(path, *wide, mode=mode) for path in PROTECTED} == dict.fromkeys(PROTECTED, "ask")


def test_other_files_and_reading_are_not_affected() -> None:
    others = ["git/config", ".github/workflows/x.yml", ".gitignore", "src/agents.py", "envrc", "/home/me/mootx/config.yaml"]
    assert {path: on(path, mode="edits") for path in others} == dict.fromkeys(others, "allow")
    assert decide(Permissions(), "ask", ReadFile(), ".git/config", directory=HERE).action == "allow"
    assert on(".git/config", mode="plan") == "deny"


def test_exactly_this_file_can_be_allowed_in_the_conversation_but_not_always() -> None:
    part = decide(Permissions(), "edits", EditFile(), "AGENTS.md", directory=HERE).parts[0]
    assert (part.patterns, part.always, part.why) == ((f"{HERE}/AGENTS.md",), False, "'AGENTS.md' is protected")
    assert on("AGENTS.md", mode="edits", grants=(Grant("write_file", f"{HERE}/AGENTS.md"),)) == "allow"
    assert on("AGENTS.md", mode="edits", grants=(Grant("write_file", f"{HERE}/*"),)) == "ask"


def test_a_link_to_a_protected_file_is_protected(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "plain").symlink_to(tmp_path / ".git")
    assert decide(Permissions(), "edits", WriteFile(), "plain/config", directory=str(tmp_path)).action == "ask"


@pytest.mark.parametrize(
    "line",
    [
        "cp x .git/config",
        "echo x > .git/hooks/pre-commit",
        "echo x >> ~/.bashrc",
        "sh -c 'echo x > .git/config'",
        "(echo x) > .envrc",
        "tee .claude/settings.json",
        "sed -i s/a/b/ AGENTS.md",
        "dd of=.git/config",
        "mv .git x",
        "cp x '.g'it/config",
        "cp 'x .git/config",
    ],
)
def test_a_command_that_names_a_protected_file_asks_in_mode_auto(line: str) -> None:
    assert decide(Permissions(), "auto", Shell(), line, directory=HERE).action == "ask"
    assert decide(Permissions(rules=(Rule("shell", "allow"),)), "ask", Shell(), line, directory=HERE).action == "ask"


@pytest.mark.parametrize(
    "line", ["cat .git/config", "ls -la .claude", "git add AGENTS.md .envrc", "git status", "make test > out.txt", "grep -r x .moot"]
)
def test_a_command_that_reads_a_protected_file_does_not_ask_in_mode_auto(line: str) -> None:
    assert decide(Permissions(), "auto", Shell(), line, directory=HERE).action == "allow"


@pytest.mark.parametrize("line", ["cp hook .git/hooks/pre-commit", "rsync a .envrc", "make build | sh", "cat list | xargs make"])
def test_no_permanent_rule_is_offered_for_protected_files_or_unknown_programs(line: str) -> None:
    ruling = decide(Permissions(), "ask", Shell(), line, directory=HERE)
    assert ruling.action == "ask"
    assert not any(part.always for part in ruling.parts if part.action == "ask" and not part.within)


def test_a_permanent_rule_is_offered_for_a_line_of_known_programs() -> None:
    assert [part.always for part in decide(Permissions(), "ask", Shell(), "make build", directory=HERE).parts] == [True]
