"""`moot commands`: listing, showing and running slash commands from scripts."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

Moot = Any


@pytest.fixture
def fix(home: Path) -> Path:
    path = home / "commands/fix.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("---\ndescription: Fix a file\naliases: [f]\nmodel: demo\nparameters: [{name: file, required: true}]\n---\nFix $file.")
    return path


def test_commands_are_listed_and_shown_with_where_they_are_from(moot: Moot, fix: Path, tmp_path: Path) -> None:
    listed = {one["name"]: one for one in moot("commands", "list", "--json").json["data"]}
    assert (listed["fix"]["category"], listed["fix"]["aliases"], listed["new"]["aliases"]) == ("custom", ["f"], ["clear"])
    assert "/fix <file>" in moot("commands", "list").out
    shown = moot("commands", "show", "/f")
    assert f"from: {fix}" in shown.out and shown.out.rstrip().endswith("Fix $file.")
    (tmp_path / ".moot/commands").mkdir(parents=True)
    (tmp_path / ".moot/commands/deploy.md").write_text("Deploy.")
    assert "/deploy can't be used" in moot("commands", "list").err
    assert "moot trust" in moot("commands", "run", "deploy").err
    moot("trust")
    assert moot("commands", "show", "deploy", "--json").json["prompt"] == "Deploy."


def test_a_command_runs_its_prompt_once_with_its_own_model(moot: Moot, fix: Path) -> None:
    ended = moot("commands", "run", "f", "app.py", "--json")
    assert (ended.code, ended.json["model"]) == (0, "demo@demo")
    assert "Fix app.py." in moot("chat", "show", "1").out
    missing = moot("commands", "run", "fix")
    assert missing.code == 2 and "'file' is missing" in missing.err and "/fix <file>" in missing.err
    assert "Did you mean 'fix'?" in moot("commands", "run", "fux").err


def test_mistakes_in_commands_fail_the_check_of_the_configuration_and_the_command(
    moot: Moot, fix: Path, home: Path, tmp_path: Path
) -> None:
    (tmp_path / ".moot/commands").mkdir(parents=True)
    (tmp_path / ".moot/commands/deploy.md").write_text("Deploy.")
    checked = moot("config", "check")
    assert (checked.code, "moot trust" in checked.err) == (0, True)
    problems = {
        "lost": ("---\ndescription: x\nagent: codr\n---\nFix.", "lost.md:3: Agent 'codr' not found."),
        "other": ("---\nmodel: small@opena\n---\nFix.", "other.md:2: Provider 'opena' not found. Did you mean 'openai'?"),
        "empty": ("---\ntype: workflow\n---\n", "empty.md:2:7: commands.empty.type: A workflow needs steps."),
    }
    for name, (text, _) in problems.items():
        (home / f"commands/{name}.md").write_text(text)
    (home / "config.yaml").write_text("commands:\n  mine:\n    prompt: Fix.\n    agent: codr\n")
    checked, ran = moot("config", "check"), {name: moot("commands", "run", name) for name in problems}
    for name, (_, problem) in problems.items():
        assert problem in checked.err and problem in ran[name].err, checked.err
        assert (checked.code, ran[name].code) == (2, 2)
    assert f"{home / 'config.yaml'}:4: Agent 'codr' not found." in checked.err


def test_actions_have_their_effect_without_a_user_interface(moot: Moot, fix: Path, tmp_path: Path) -> None:
    moot("commands", "run", "plan", "-m", "demo", "say hello")
    assert moot("chat", "settings", "1", "--json").json["settings"]["mode"] == "plan"
    assert moot("commands", "run", "title", "Plans", "-c", "1").out == "Plans\n"
    exported = moot("commands", "run", "export", "-c", "1")
    assert exported.out == f"Exported to {tmp_path / 'plans.md'}\n" and "say hello" in (tmp_path / "plans.md").read_text()
    assert moot("commands", "run", "export", "-c", "1").out == f"Exported to {tmp_path / 'plans-2.md'}\n"
    assert moot("commands", "run", "title", "-c", "1", "--json").json == {"text": "Plans"}
    again = moot("commands", "run", "retry", "-c", "1", "--json")
    assert (again.code, again.json["model"]) == (0, "demo@demo") and "You said: say hello" in again.json["text"]
    assert moot("chat", "show", "1", "--json").out.count('"say hello"') == 1
    for command in ("retry", "title"):
        assert "Specify a conversation with the option -c." in moot("commands", "run", command).err
    for action in ("run", "show"):
        assert "'fux' not found. Did you mean 'fix'?\n  moot commands list" in moot("commands", action, "fux").err
    assert "only in an open conversation" in moot("commands", "run", "exit").err


def test_words_of_the_shell_stay_words(moot: Moot, home: Path) -> None:
    (home / "commands").mkdir(exist_ok=True)
    (home / "commands/say.md").write_text("---\ntype: insert\nparameters: [{name: a}, {name: b}]\n---\n$1|$2|$a|$b|$ARGUMENTS")
    assert moot("commands", "run", "say", "a b", "it's", "c").out == "a b|it's|a b|it's c|a b it's c\n"
    assert moot("commands", "run", "say").out == "||||\n"
    (home / "commands/write.yaml").write_text("type: workflow\nsteps:\n- prompt: Write $1\n")
    moot("commands", "run", "write", "-m", "demo", "a b", "c")
    assert "/write 'a b' c" in moot("chat", "show", "1").out


def test_an_option_replaces_the_agent_and_the_model_of_a_command(moot: Moot, home: Path) -> None:
    (home / "commands").mkdir(exist_ok=True)
    (home / "config.yaml").write_text("agents: {one: {model: demo}, two: {model: demo}}\n")
    (home / "commands/fix.md").write_text("---\nagent: one\nmodel: small\n---\nFix it.")
    runs = [("one", "demo@demo", ("-m", "demo")), ("two", "demo@demo", ("-a", "two", "-m", "demo"))]
    for agent, model, options in runs:
        ended = moot("commands", "run", "fix", *options, "--json")
        assert (ended.code, ended.json["agent"], ended.json["model"]) == (0, agent, model), ended.err


def test_a_shell_line_is_shown_as_a_line_of_its_command(moot: Moot, home: Path) -> None:
    (home / "commands").mkdir(exist_ok=True)
    (home / "commands/look.md").write_text("Look at !`echo heron`")
    ended = moot("commands", "run", "look", "-m", "demo", "--mode", "auto")
    assert "shell (from /look)" in ended.err and "shell (from /look)" in moot("chat", "show", "1").out


def test_a_workflow_is_shown_with_its_steps(moot: Moot, home: Path) -> None:
    (home / "commands").mkdir(exist_ok=True)
    (home / "commands/write.yaml").write_text(
        "type: workflow\nsteps:\n- {name: draft, prompt: Draft $1, retries: 2, check: {matches: ^heron$}}\n- {prompt: End}\n"
    )
    shown = moot("commands", "show", "write").out
    assert shown.endswith("1. draft\n   Draft $1\n   check: matches ^heron$\n   retries: 2\n\n2. 2\n   End\n")
    steps = moot("commands", "show", "write", "--json").json["steps"]
    assert [(step["name"], step["check"]) for step in steps] == [("draft", {"kind": "matches", "text": "^heron$"}), ("2", None)]
    ended = moot("commands", "run", "write", "-m", "demo", "x")
    assert ended.code == 1 and "Step 1 of 2, 'draft', failed: The output does not match '^heron$'." in ended.err


@pytest.mark.slow
def test_git_shows_stages_and_commits_changes(moot: Moot, tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    def run(*argument: str) -> str:
        done = moot("commands", "run", "git", "--", *argument)
        assert done.code == 0, done.err
        return done.out

    git("init", "--quiet", "--initial-branch=main")
    for name, value in (("user.name", "Ada"), ("user.email", "ada@example.org"), ("commit.gpgSign", "false")):
        git("config", name, value)
    (tmp_path / ".git/info/exclude").write_text("/*\n!/*.txt\n")
    for name in ("a.txt", "b c.txt"):
        (tmp_path / name).write_text("one\n")
    assert run() == "On branch main.\nUntracked:\n  a.txt\n  b c.txt\n"
    assert run("stage", "b c.txt") == "Staged:\n  added     b c.txt\n"
    assert run("commit", "Add b") == f"Committed {git('rev-parse', 'HEAD')[:10]}: Add b\n"
    assert git("show", "--name-only", "--format=%s", "HEAD") == "Add b\n\nb c.txt\n"
    (tmp_path / "b c.txt").write_text("two\nthree\n")
    shown = run()
    assert "Not staged:\n  modified  b c.txt\nUntracked:\n  a.txt\nLines since the last commit: 2 added, 1 removed.\n" in shown
    assert shown.endswith("  Add b\n") and run("log").endswith("  Add b  (Ada)\n")
    assert "-one\n+two\n" in run("diff") and "-one\n+two\n" in run("diff", "b c.txt")
    assert run("diff", "a.txt") == "a.txt is not tracked, so there is no diff. To track it, use /git stage a.txt.\n"
    assert run("stage", ".").startswith("Staged:\n")
    git("commit", "--quiet", "--message=All")
    assert run("diff", "a.txt") == "There are no changes in tracked files of a.txt.\n"
    git("reset", "--quiet", "--soft", "HEAD^")
    assert run("unstage", ".") == "Nothing is staged.\n"
    for argument, problem in (
        (("commit", "x"), "Nothing is staged"),
        (("commit",), "message is missing"),
        (("stage",), "at least one path"),
        (("stage", "../x"), "not a path in the project's folder"),
        (("stage", "missing"), "git add failed"),
        (("stauge", "."), "Did you mean 'stage'?"),
        (("diff", "nope"), "'nope' is neither a file nor a folder in the project."),
        (("log", "5"), "takes no argument"),
    ):
        failed = moot("commands", "run", "git", "--", *argument)
        assert failed.code in (1, 2) and problem in failed.err, failed.err
    assert git("rev-list", "--count", "HEAD") == "1\n"


def test_git_outside_of_a_repository_is_an_error(moot: Moot) -> None:
    failed = moot("commands", "run", "git")
    assert failed.code == 2 and "needs a Git repository" in failed.err
