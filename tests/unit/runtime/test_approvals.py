"""Which calls may run, which ask, which are denied."""

from __future__ import annotations

import pytest

from moot.config.settings import Permissions, Rule
from moot.runtime.approvals import decide
from moot.tools.edit_file import EditFile
from moot.tools.fetch_url import FetchUrl
from moot.tools.read_file import ReadFile
from moot.tools.shell import Shell
from moot.types.agent import Mode

READ, EDIT, SHELL, FETCH = ReadFile(), EditFile(), Shell(), FetchUrl()


@pytest.mark.parametrize(
    ("mode", "read", "edit", "shell", "fetch"),
    [
        ("ask", "allow", "ask", "ask", "ask"),
        ("edits", "allow", "allow", "ask", "ask"),
        ("plan", "allow", "deny", "deny", "deny"),
        ("auto", "allow", "allow", "allow", "allow"),
    ],
)
def test_each_mode_decides_by_effect(mode: Mode, read: str, edit: str, shell: str, fetch: str) -> None:
    wanted = zip((READ, EDIT, SHELL, FETCH), (read, edit, shell, fetch), strict=True)
    for tool, action in wanted:
        assert decide(Permissions(), mode, tool, "x")[0] == action, tool.name


def test_deny_goes_before_ask_and_ask_before_allow() -> None:
    rules = (Rule("shell", "allow", "git *"), Rule("shell", "ask", "git push*"), Rule("*", "deny", "git push --force*"))
    permissions = Permissions(rules=rules)
    assert decide(permissions, "ask", SHELL, "git status")[0] == "allow"
    assert decide(permissions, "auto", SHELL, "git push origin")[0] == "ask"
    assert decide(permissions, "auto", SHELL, "git push --force origin")[0] == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "git status; rm -rf /",
        "git status && id",
        "git status | sh",
        "git status $(id)",
        "git status `id`",
        "git status > /etc/passwd",
        "git status < x",
        "git status\nid",
        "git status\rid",
        "git status & id",
        "git status <(id)",
        "git status \\",
    ],
)
def test_a_rule_for_one_command_never_covers_a_compound_line(command: str) -> None:
    permissions = Permissions(rules=(Rule("shell", "allow", "git status*"),))
    assert decide(permissions, "ask", SHELL, command)[0] == "ask"


def test_rules_match_case_and_tool_exactly() -> None:
    permissions = Permissions(rules=(Rule("shell", "allow", "git status"),))
    assert decide(permissions, "ask", SHELL, "GIT STATUS")[0] == "ask"
    assert decide(permissions, "ask", EDIT, "git status")[0] == "ask"
