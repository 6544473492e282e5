"""Calls that run, need approval, or are denied."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.config.settings import Permissions, Rule
from moot.guard.commands.wrappers import spelled
from moot.runtime.approvals.policy import decide
from moot.tools.builtin.delegate import Delegate
from moot.tools.builtin.fetch_url import FetchUrl
from moot.tools.builtin.file_changes import EditFile
from moot.tools.builtin.read_file import ReadFile
from moot.tools.builtin.shell import Shell
from moot.tools.builtin.web_search import WebSearch
from moot.types.agent import Mode
from moot.types.approval import Grant

READ, EDIT, SHELL, FETCH = ReadFile(), EditFile(), Shell(), FetchUrl()
HERE = "/home/me/app"


def allow(*patterns: str, tool: str = "shell") -> tuple[Rule, ...]:
    return tuple(Rule(tool, "allow", pattern) for pattern in patterns)


def on(command: str, *rules: Rule, mode: Mode = "ask", grants: tuple[Grant, ...] = ()) -> str:
    return decide(Permissions(rules=rules), mode, SHELL, command, grants=grants).action


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
        assert decide(Permissions(), mode, tool, "x").action == action, tool.name


def test_deny_overrides_ask_and_ask_overrides_allow() -> None:
    rules = (*allow("git *"), Rule("shell", "ask", "git push*"), Rule("*", "deny", "git push --force*"))
    for order in permutations(rules):
        assert on("git status", *order) == "allow"
        assert on("git push origin", *order, mode="auto") == "ask"
        assert on("git push --force origin", *order, mode="auto") == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "git status; rm -rf /",
        "git status && id",
        "git status || id",
        "git status | sh",
        "git status $(id)",
        "git status `id`",
        'git status "$(id)"',
        "git status > /etc/passwd",
        "git status >| x",
        "git status < x",
        "git status <<< x",
        "git status\nid",
        "git status\rid",
        "git status & id",
        "git status <(id)",
        "git status \\",
        "git status $X",
        "git status {a,--output=b}",
        "GIT_PAGER=id git status",
        "git() { id; }; git status",
        "alias git=id; git status",
        "for PATH in /tmp; do git status; done",
        "while id; do git status; done",
        "if id; then git status; fi",
        "[[ a[$(id)] -eq 1 ]] && git status",
        "case x in x) git status;; esac",
        "cat <<X | git status\nX",
        "eval git status",
        "git\u00a0status",
        "git status\u2028id",
        "g\u0456t status",
        "git status " + "x" * 10_000,
        "\n".join(["git status"] * 51),
    ],
)
def test_an_allowed_command_never_covers_more_of_a_line_than_itself(command: str) -> None:
    assert on(command, *allow("git status*")) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git status --short",
        "git 'status' -s",
        "git status; git status -s",
        "git status && ls -la | head -3",
        "git status &",
        "(git status)",
        "{ git status; }",
        "! git status",
        "if git status; then ls; fi",
        "git status >/dev/null 2>&1",
        "git status # and ls",
        "git status \\\n  --short",
        "\\git status",
        "ls -- *.py",
    ],
)
def test_a_line_is_allowed_when_each_of_its_commands_is(command: str) -> None:
    assert on(command, *allow("git status *", "ls *", "head *")) == "allow"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("sudo rm x", "sudo"),
        ("sudo -u bob ls", "sudo"),
        ("env A=1 ls", "env"),
        ("xargs rm", "xargs"),
        ("nohup ls", "nohup"),
        ("timeout 5 ls", "timeout"),
        ("time ls", "time"),
        ("sh -c ls", "sh"),
        ("bash -lc 'ls; id'", "bash"),
        ("/bin/bash -c ls", "/bin/bash"),
        ("eval ls", "eval"),
        ("find . -exec rm {} +", "find"),
        ("find . -delete", "find"),
        ("git -c alias.x=!id x", "git"),
        ("git rebase --exec id", "git"),
        ("python -c 'import os'", "python"),
        ("python3.11 x.py", "python3.11"),
        ("perl -e 1", "perl"),
        ("awk 1 x", "awk"),
        ("uv run ls", "uv"),
        ("npx cowsay", "npx"),
        ("ssh host id", "ssh"),
        ("command ls", "command"),
        ("tar -x --to-command=id", "tar"),
        (". x", "."),
    ],
)
def test_the_name_of_a_wrapper_alone_never_covers_what_it_runs(command: str, name: str) -> None:
    assert on(command, *allow(f"{name} *", f"{name}*")) == "ask"
    assert on(command, Rule("shell", "allow")) == "allow"


def test_a_wrapper_is_allowed_with_the_command_that_it_runs() -> None:
    assert on("uv run pytest -q", *allow("uv run pytest *")) == "allow"
    assert on("uv run pytest -q", *allow("uv run *")) == "ask"
    assert on("timeout 5 git status -s", *allow("timeout 5 git *")) == "allow"
    assert on("python -m pytest x", *allow("python -m pytest *")) == "allow"
    assert on("sudo -u bob ls", *allow("sudo -u bob ls")) == "allow"
    assert on("env sudo ls", *allow("env sudo *")) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "rm x",
        "ls; rm x",
        "/bin/rm x",
        "\\rm x",
        "r''m x",
        "sudo rm x",
        "sudo -u bob rm x",
        "env A=1 rm x",
        "nice -n 5 rm x",
        "xargs rm x",
        "timeout -k 5 10 rm x",
        "sh -c 'rm x'",
        "bash -lc \"ls && sh -c 'rm x'\"",
        "find . -exec rm x \\;",
        "echo $(rm x)",
        'echo "`rm x`"',
        "cat <(rm x)",
        "f() { rm x; }; f",
        "for i in 1; do rm x; done",
        "cat <<E\n$(rm x)\nE",
        "a=(1 $(rm x))",
        "[[ -n $(rm x) ]]",
        "rm x > y",
        "A=1 rm x",
        "~/rm",
    ],
)
def test_a_denied_command_is_denied_anywhere_in_a_line(command: str) -> None:
    assert on(command, Rule("shell", "deny", "rm *"), mode="auto") == "deny"
    assert on(command, *allow("*"), Rule("shell", "deny", "rm *")) == "deny"


@pytest.mark.parametrize("command", ["$X x", "r? x", "${A}m x", "sudo $X", 'sh -c "$X"', "xargs $X", "r{m,} x", "rm\u00a0x", "ls 'x"])
def test_a_command_that_may_be_denied_needs_approval(command: str) -> None:
    assert on(command, Rule("shell", "deny", "rm *"), mode="auto") == "ask"
    assert on(command, mode="auto") == "allow"


def test_an_unknown_argument_of_a_harmless_command_does_not_ask() -> None:
    assert on("ls $HOME", Rule("shell", "deny", "rm *"), mode="auto") == "allow"


def test_rules_match_case_and_tool_exactly() -> None:
    assert on("GIT STATUS", *allow("git status")) == "ask"
    assert decide(Permissions(rules=allow("git status")), "ask", EDIT, "git status").action == "ask"


def test_each_part_has_its_own_verdict_and_the_narrowest_pattern() -> None:
    rules = (*allow("uv run pytest *"), Rule("shell", "deny", "shutdown*"))
    ruling = decide(Permissions(rules=rules), "ask", SHELL, "rm -rf build/ && uv run pytest -q && shutdown now")
    assert [(part.text, part.action) for part in ruling.parts if not part.within] == [
        ("rm -rf build/", "ask"),
        ("uv run pytest -q", "allow"),
        ("shutdown now", "deny"),
    ]
    assert (ruling.action, ruling.parts[0].patterns, ruling.parts[0].always) == (
        "deny",
        ("rm -rf build/ && uv run pytest -q && shutdown now",),
        False,
    )


@pytest.mark.parametrize(
    ("command", "narrowest", "always"),
    [
        ("git status", "git status", True),
        ("git status --short", "git status --short", True),
        ("uv run pytest -q", "uv run pytest -q", True),
        ("npm run build --watch", "npm run build --watch", True),
        ("ls -la", "ls -la", True),
        ("cat src/x.py", "cat src/x.py", True),
        ("ls *.py", "ls [*].py", True),
        ("python x.py --all", "python x.py --all", True),
        ("rm -rf build", "rm -rf build", False),
        ("sudo ls", "sudo ls", False),
        ("git push --force", "git push --force", False),
        ("sh -c ls", "sh -c ls", False),
        ("find . -delete", "find . -delete", False),
        ("echo \u0456", "echo '\u0456'", False),
    ],
)
def test_the_narrowest_pattern_covers_its_command(command: str, narrowest: str, always: bool) -> None:
    part = decide(Permissions(), "ask", SHELL, command).parts[0]
    assert (part.patterns[0], part.always) == (narrowest, always)
    assert on(command, grants=(Grant("shell", part.patterns[0]),)) == "allow"


@pytest.mark.parametrize("command", ["echo x > y", "echo $X", "A=1 ls", "f() { ls; }", "ls 'x", "[[ -f x ]]", "cat <<E\nE"])
def test_a_command_without_a_pattern_can_only_be_allowed_once(command: str) -> None:
    ruling = decide(Permissions(), "ask", SHELL, command)
    assert ruling.action == "ask"
    assert any(not part.patterns and not part.always for part in ruling.parts)


def test_grants_of_the_conversation_apply_but_do_not_override_deny() -> None:
    grants = (Grant("shell", "git push *"),)
    assert on("git push -q", grants=grants) == "allow"
    assert on("git push -q", Rule("shell", "ask", "git push*"), grants=grants) == "allow"
    assert on("git push -q", Rule("shell", "ask", "git push*", "never"), grants=grants) == "ask"
    assert on("git push -q", Rule("*", "deny", "git push*"), grants=grants) == "deny"
    never = decide(Permissions(rules=(Rule("shell", "ask", "git push*", "never"),)), "ask", SHELL, "git push -q").parts[0]
    assert (never.patterns, never.always) == ((), False)
    asked = decide(Permissions(rules=(Rule("shell", "ask", "git push*"),)), "ask", SHELL, "git push -q").parts[0]
    assert (bool(asked.patterns), asked.always) == (True, False)


# ── paths and addresses ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def path(subject: str, *rules: Rule, mode: Mode = "ask") -> str:
    return decide(Permissions(rules=rules), mode, EDIT, subject, directory=HERE).action


def test_a_path_is_matched_after_normalization() -> None:
    rule = allow("src/*", tool="edit_file")
    assert [path(each, *rule) for each in ("src/a.py", "./src/a/b.py", "src/../src/a.py", f"{HERE}/src/a.py")] == ["allow"] * 4
    assert [path(each, *rule) for each in ("src/../secret", "src/../../x", "/src/a.py", "srcx/a")] == ["ask"] * 4
    deny = Rule("*", "deny", "*.env")
    assert [path(each, deny, mode="auto") for each in ("a.env", "x/../a.env", f"{HERE}/b/.env")] == ["deny"] * 3
    assert path("x/../secret", Rule("*", "deny", "secret"), mode="auto") == "deny"


def test_a_file_is_offered_by_itself_and_then_its_folder() -> None:
    part = decide(Permissions(), "ask", EDIT, "./src/[a].py", directory=HERE).parts[0]
    assert part.patterns == (f"{HERE}/src/[[]a].py", f"{HERE}/src/*")
    assert path("src/[a].py", *allow(part.patterns[0], tool="edit_file")) == "allow"
    assert path("src/a.py", *allow(part.patterns[0], tool="edit_file")) == "ask"


def url(subject: str, *rules: Rule, mode: Mode = "ask") -> str:
    return decide(Permissions(rules=rules), mode, FETCH, subject).action


def test_an_address_is_offered_by_its_host() -> None:
    part = decide(Permissions(), "ask", FETCH, "https://Docs.example.org/a?b=1").parts[0]
    assert part.patterns == ("https://docs.example.org/*",)
    rule = allow(part.patterns[0], tool="fetch_url")
    assert [url(each, *rule) for each in ("https://docs.example.org", "HTTPS://docs.example.org:443/x")] == ["allow"] * 2
    others = ["http://docs.example.org/", "https://docs.example.org.evil.com/", "https://docs.example.org@evil.com/", "https://evil.com/"]
    others += ["https://docs.example.org\\@evil.com/", "https://docs.example.org:8443/", "https://evil.com/https://docs.example.org/"]
    assert [url(each, *rule) for each in others] == ["ask"] * len(others)


def test_an_address_is_denied_however_it_is_spelled() -> None:
    deny = Rule("fetch_url", "deny", "https://evil.com/*")
    spellings = [
        "https://evil.com/x",
        "https://EVIL.com/",
        "https://evil.com",
        "https://evil.com:443/",
        "https://ev%69l.com/",
        "https://evil.com./",
    ]
    assert [url(each, deny, mode="auto") for each in spellings] == ["deny"] * len(spellings)


def test_a_tool_without_a_subject_is_offered_as_a_whole() -> None:
    assert decide(Permissions(), "ask", WebSearch(), "").parts[0].patterns == ("*",)


# ── properties ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

WORDS = st.sampled_from(
    ["git", "status", "rm", "-rf", "ls", "a b", "x'y", 'q"q', "*.py", "$HOME", "~", "{a,b}", "#", ";", "\\", "sudo", "sh", "-c"]
)
COMMANDS = st.lists(WORDS, min_size=1, max_size=4)
LINES = st.lists(COMMANDS, min_size=1, max_size=4)
PATTERNS = st.sampled_from(["git *", "git status", "git status *", "ls*", "rm *", "sudo *", "sh *", "sudo rm *", "?s", "*a*", "[*].py"])


def quoted(words: list[str]) -> str:
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)


@given(LINES, st.sampled_from([";", "&&", "||", "|", "&", "\n"]), st.lists(PATTERNS, max_size=4))
def test_a_line_is_allowed_only_when_a_pattern_spells_each_command(line: list[list[str]], joint: str, patterns: list[str]) -> None:
    if on(f" {joint} ".join(map(quoted, line)), *allow(*patterns)) == "allow":
        for words in line:
            text = spelled(words)
            assert any(fnmatchcase(text, each) or fnmatchcase(f"{text} ", each) for each in patterns), (text, patterns)


@given(
    LINES,
    st.sampled_from([";", "&&", "|"]),
    st.permutations([*allow("*", "git *", "rm *"), Rule("shell", "deny", "rm *"), Rule("*", "ask")]),
)
def test_a_denied_command_denies_the_line_in_every_order_of_rules(line: list[list[str]], joint: str, rules: list[Rule]) -> None:
    action = on(f" {joint} ".join(map(quoted, line)), *rules, mode="auto", grants=(Grant("shell", "rm *"),))
    if any(words[0] == "rm" for words in line):
        assert action == "deny"
    assert action != "allow"


@pytest.mark.parametrize(
    ("subject", "rules", "mode", "action"),
    [
        ("explorer", (), "ask", "ask"),
        ("explorer", (), "edits", "ask"),
        ("explorer", (), "plan", "allow"),  # the sub-agent is in mode plan too
        ("explorer", (), "auto", "allow"),
        ("explorer", (Rule("delegate", "allow", "explorer"),), "ask", "allow"),
        ("explorer, reviewer", (Rule("delegate", "allow", "explorer"),), "ask", "ask"),
        ("explorer, reviewer", (Rule("delegate", "deny", "reviewer"),), "auto", "deny"),
    ],
)
def test_rules_match_each_agent_that_a_call_starts(subject: str, rules: tuple[Rule, ...], mode: Mode, action: str) -> None:
    ruling = decide(Permissions(rules=rules), mode, Delegate(), subject, directory="/work")
    assert ruling.action == action
    if action == "ask":
        assert [part.text for part in ruling.parts] == [name for name in subject.split(", ") if rules == () or name == "reviewer"]
        assert all("/" not in pattern for part in ruling.parts for pattern in part.patterns)
