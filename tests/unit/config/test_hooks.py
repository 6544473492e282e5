"""Hooks in the configuration: mistakes, projects, and templates."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from moot.config.hooks import fits
from moot.config.loader import Loaded, load
from moot.config.trust import is_trusted, trust_file
from moot.errors import ConfigError
from moot.types.command_tool import Check
from moot.types.hooks import CommandHook, RunHook, SkipIf
from moot.types.templates import fill, fill_line

HOME = """
hooks:
  PreToolUse:
    - matcher: shell
      hooks:
        - {type: command, command: check, timeout: 5}
        - {command: log}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def loaded(home: Path, text: str, directory: Path | None = None) -> Loaded:
    (home / "config.yaml").write_text(text)
    return load(home=home, environ={}, directory=directory or home)


def doubt(home: Path, text: str) -> str:
    found = loaded(home, text).doubt
    return found.message if found is not None else ""


def test_commands_are_read_in_the_usual_form(home: Path) -> None:
    found = loaded(home, HOME)
    assert found.settings.hooks == {"PreToolUse": (CommandHook("check", "shell", 5.0), CommandHook("log", "shell"))}
    assert found.doubt is None


def test_hooks_of_agents_are_read(home: Path) -> None:
    before = "{tool: shell, arguments: {command: 'ls {{agent}}'}, skip_if: empty}"
    found = loaded(home, f"agents: {{a: {{hooks: {{before_run: [{before}], after_run: [{{tool: todo}}]}}}}}}")
    hooks = found.settings.agents["a"].hooks
    assert hooks.before_run == (RunHook("shell", {"command": "ls {{agent}}"}, SkipIf("empty")),) and hooks.after_run == (RunHook("todo"),)
    assert found.doubt is None


@pytest.mark.parametrize(
    "text, problem",
    [
        ("hooks: {PreTolUse: []}", "hooks: Unknown key 'PreTolUse'. Did you mean 'PreToolUse'?"),
        ("hooks: {Stop: [{hooks: [{command: ''}]}]}", "hooks.Stop[0].hooks[0].command:"),
        ("hooks: {Stop: [{hooks: [{command: x, type: prompt}]}]}", "Expected 'command', got 'prompt'."),
        ("hooks: {Stop: [{hooks: [{command: x, timeout: 0}]}]}", "hooks.Stop[0].hooks[0].timeout:"),
        ("hooks: {Stop: [{matcher: '(', hooks: []}]}", "hooks.Stop[0].matcher: Expected a regular expression"),
        ("hooks: {Stop: [{hooks: [{comand: x}]}]}", "hooks.Stop[0].hooks[0]: Unknown key 'comand'. Did you mean 'command'?"),
        ("agents: {a: {hooks: {before_run: [{tool: todo, skip_if: never}]}}}", "Expected `empty`, `{empty: true}`"),
        (
            "agents: {a: {hooks: {before_run: [{tool: todo, skip_if: {}}]}}}",
            "Expected exactly one of the keys `empty`, `equals`, `contains` and `matches`.",
        ),
        ("checks: {'*.py': ruff}", "checks.*.py: Expected a list, got 'ruff'."),
        ("checks: {'*.py': ['  ']}", "checks.*.py[0]: Expected a command, got '  '."),
        ("checks: {'*.py': ['ruff {path}']}", "Expected {file} as the only placeholder, got"),
        ("checks: {'*.py': ['bash -c \"x {file}\"']}", "A placeholder can't be in code that 'bash' runs"),
        ("agents: {a: {hooks: {before_run: [{}]}}}", "The required key 'tool' is missing."),
    ],
)
def test_invalid_hooks_are_refused_with_their_place(home: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        loaded(home, text)
    assert problem in raised.value.message and raised.value.line == 1


BEFORE = "agents: {{a: {{hooks: {{before_run: [{{tool: shell, {}}}]}}}}}}"


@pytest.mark.parametrize(
    "text, problem",
    [
        ("hooks: {PreToolUse: [{matcher: Bash, hooks: [{command: x}]}]}", "hooks.PreToolUse[0].matcher: No tool of moot matches 'Bash'."),
        ("hooks: {PostToolUse: [{matcher: shell|Edit, hooks: [{command: x}]}]}", "No tool of moot matches 'Edit'."),
        ("hooks: {SessionStart: [{matcher: clear, hooks: [{command: x}]}]}", "Nothing matches 'clear'. Known: startup, resume."),
        ("hooks: {Stop: [{matcher: shell, hooks: [{command: x}]}]}", "Stop takes no matcher; its hooks always run."),
        ("agents: {a: {hooks: {before_run: [{tool: shel}]}}}", "agents.a.hooks.before_run[0].tool:"),
        (BEFORE.format("arguments: {command: 'ls {{folder}}'}"), "Unknown variable 'folder'. Known: last_run, "),
        (BEFORE.format("arguments: {command: 'ls {{response}}'}"), "It is only known in after_run."),
        (BEFORE.format("skip_if: {equals: '{{nope}}'}"), "agents.a.hooks.before_run[0].skip_if: Unknown variable 'nope'."),
        (BEFORE.format("skip_if: {matches: '('}"), "skip_if.matches: Expected a regular expression"),
        (BEFORE.format("arguments: {command: 'ls $({{prompt}})'}"), "can't contain '$('"),
        (BEFORE.replace("before", "after").format("skip_if: empty"), "This applies only to hooks in before_run."),
    ],
)
def test_mistakes_that_matter_when_a_hook_runs_fail_the_check(home: Path, text: str, problem: str) -> None:
    assert problem in doubt(home, text)


@pytest.mark.parametrize("matcher", ["shell", "read_file|write_file", "*", "", ".*_file", "mcp__docs__.*", "shell|mcp__docs__read"])
def test_matchers_that_name_tools_pass_the_check(home: Path, matcher: str) -> None:
    assert doubt(home, f"hooks: {{PreToolUse: [{{matcher: '{matcher}', hooks: [{{command: x}}]}}]}}") == ""


def test_a_matcher_covers_whole_names() -> None:
    assert fits("", "shell") and fits("*", "shell") and fits("sh.*", "shell") and not fits("sh", "shell") and not fits("ell", "shell")


# ── projects ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".moot" / "hooks").mkdir(parents=True)
    (folder / ".moot" / "config.yaml").write_text("hooks: {PreToolUse: [{hooks: [{command: .moot/hooks/own}]}]}")
    (folder / ".moot" / "hooks" / "own").write_text("echo one")
    return folder


def trust(home: Path, project: Path) -> None:
    file = project / ".moot" / "config.yaml"
    trust_file(home, file, file.read_text())


def test_hooks_of_a_project_run_after_trust_in_its_folder_next_to_those_of_the_user(home: Path, project: Path) -> None:
    own = (CommandHook("check", "shell", 5.0), CommandHook("log", "shell"))
    assert loaded(home, HOME, project).settings.hooks["PreToolUse"] == own
    trust(home, project)
    added = CommandHook(".moot/hooks/own", folder=str(project))
    assert loaded(home, HOME, project).settings.hooks["PreToolUse"] == (*own, added)
    assert loaded(home, "limits: {steps: 3}", project).settings.hooks["PreToolUse"] == (added,)


def test_a_changed_program_of_a_projects_hooks_ends_the_trust(home: Path, project: Path) -> None:
    file = project / ".moot" / "config.yaml"
    trust(home, project)
    assert is_trusted(home, file, file.read_text())
    (project / ".moot" / "hooks" / "own").write_text("curl evil")
    assert not is_trusted(home, file, file.read_text()) and "has changed since it was trusted" in loaded(home, HOME, project).notes[0]
    trust(home, project)
    (project / ".moot" / "hooks" / "new").write_text("curl evil")
    assert not is_trusted(home, file, file.read_text())


def test_a_changed_script_that_a_projects_hook_names_ends_the_trust(home: Path, project: Path) -> None:
    file, script = project / ".moot" / "config.yaml", project / "scripts" / "check.sh"
    file.write_text("hooks: {Stop: [{hooks: [{command: 'cd x; sh ./scripts/check.sh --all'}]}]}")
    script.parent.mkdir()
    script.write_text("true")
    trust(home, project)
    assert is_trusted(home, file, file.read_text())
    script.write_text("curl evil")
    assert not is_trusted(home, file, file.read_text())


def test_checks_of_a_project_run_in_its_folder_and_are_trusted_with_their_programs(home: Path, project: Path) -> None:
    file, script = project / ".moot" / "config.yaml", project / "lint.sh"
    file.write_text("checks: {'*.py': ['./lint.sh {file}']}")
    script.write_text("true")
    trust(home, project)
    mine = "formatters: {'*.md': ['fmt {file}']}\nchecks: {'*.py': ['ruff check {file}']}"
    formatter, own = Check("*.md", "fmt {file}", formats=True), Check("*.py", "ruff check {file}")
    assert loaded(home, mine, project).settings.checks == (formatter, own, Check("*.py", "./lint.sh {file}", folder=str(project)))
    script.write_text("curl evil")
    assert loaded(home, mine, project).settings.checks == (formatter, own)


@pytest.mark.parametrize("target", ["../../scripts", "nowhere", None], ids=["a folder", "nothing", "a pipe"])
def test_programs_that_can_change_unnoticed_are_not_trusted(home: Path, project: Path, target: str | None) -> None:
    (project / "scripts").mkdir()
    link = project / ".moot" / "hooks" / "more"
    if target is None:
        os.mkfifo(link)
    else:
        link.symlink_to(target)
    with pytest.raises(ConfigError, match=r"more is (a link to a folder|not a file)"):
        trust(home, project)
    link.unlink()
    trust(home, project)
    link.symlink_to("../../scripts")
    file = project / ".moot" / "config.yaml"
    assert not is_trusted(home, file, file.read_text())


# ── templates ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_variables_are_filled_in_nested_values() -> None:
    assert fill({"a": ["{{x}} and {{ y }}", 1, None]}, {"x": "1", "y": "{{x}}"}) == {"a": ["1 and {{x}}", 1, None]}
    with pytest.raises(KeyError):
        fill("{{z}}", {})


@settings(max_examples=20)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40))
@example("'; touch /tmp/x; echo '")
@example('"$(touch /tmp/x)`id`\\')
@example("$HOME * ; & # !x\nnext\n")
def test_a_shell_reads_a_value_as_one_unchanged_word(value: str) -> None:
    line = fill_line("printf '%s\\0' {{x}} '<{{x}}>' \"<{{x}}>\" a{{x}}b", {"x": value})
    words = subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=True).stdout.decode().split("\0")
    assert words == [value, f"<{value}>", f"<{value}>", f"a{value}b", ""]


@pytest.mark.parametrize("line", ["echo `{{x}}`", "echo $({{x}})", "cat <<E\n{{x}}\nE", "ls # {{x}}", "echo \\{{x}}", "(( {{x}} ))"])
def test_lines_in_which_no_quoting_is_safe_are_refused(line: str) -> None:
    with pytest.raises(ValueError, match="could not be quoted safely"):
        fill_line(line, {"x": "1"})
