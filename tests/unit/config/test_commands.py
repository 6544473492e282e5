"""Custom commands in files: where they are found, when they are trusted, and what is reported about invalid ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot.config.commands import file_commands, read_command
from moot.config.trust import trust_file
from moot.errors import ConfigError
from moot.types.workflow import StepCheck, WorkflowStep


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_front_matter_and_text_make_a_command(tmp_path: Path) -> None:
    text = (
        "---\ndescription: Fix a file\nargument: <file>\naliases: [f]\ncategory: edits\nmodel: small\nagent: coder\n"
        "requires: [repository]\n"
        "parameters: [{name: file, required: true}]\nexamples: [/fix a.py]\n---\n\nFix $file.\n"
    )
    found = read_command("fix", tmp_path / "fix.md", text)
    facts = found.facts
    assert (found.prompt, found.model, facts.help, facts.argument) == ("Fix $file.", "small", "Fix a file", "<file>")
    assert (facts.aliases, facts.category, facts.agent, facts.requires) == (("f",), "edits", "coder", ("repository",))
    assert (facts.parameters[0].required, facts.origin) == (True, str(tmp_path / "fix.md"))
    assert read_command("a", tmp_path / "a.md", "# Only a text\n\nmore").facts.help == "Only a text"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("---\nmodle: x\n---\ntext", ":2:1: commands.fix: Unknown key 'modle'"),
        ("---\ndescription: nothing\n---\n", "The prompt is empty"),
        ("---\nprompt: twice\n---\ntext", "given twice"),
        ("---\nrequires: [coffee]\n---\ntext", "requires"),
        ("---\n: [\n---\ntext", ":2:"),
        ("---\ntype: workflow\nsteps:\n- prompt: a\n---\n\ntext", ":7: commands.fix.prompt: A workflow has no prompt of its own"),
        ("---\ntype: workflow\n---\n", ":2:7: commands.fix.type: A workflow needs steps"),
        ("---\nsteps: [{prompt: a}]\n---\ntext", ":2:1: commands.fix.steps: Only a workflow has steps"),
        (
            "---\nparameters: [{name: a}, {name: b}, {name: a}]\n---\ntext",
            ":2:43: commands.fix.parameters[2].name: The parameter 'a' is de",
        ),
        ("---\ntype: workflow\nsteps:\n- prompt: 'a {{b'\n---\n", ":4:11: commands.fix.steps[0].prompt: '}}' is missing after '{{b'"),
        ("---\ntype: workflow\nsteps:\n- prompt: 'a {{1} {{2}}'\n---\n", "'}}' is missing after '{{1} {{2}}'"),
        ("---\ntype: workflow\nsteps:\n- prompt: a\n  check: {contains: '{{b}}'}\n---\n", "check.contains: Unknown variable {{b}}"),
        ("---\ntype: workflow\nsteps:\n- prompt: a\n  tries: 2\n---\n", "Unknown key 'tries'. Did you mean 'retries'? Known: name, prompt"),
        ("---\ntype: workflow\nsteps:\n- prompt: a\n  check: {text: a}\n---\n", "Unknown key 'text'. Known: command, contains, matches."),
        (
            "---\ntype: workflow\nsteps:\n- prompt: a\n- prompt: '{{steps.3.output}}'\n---\n",
            ":5:11: commands.fix.steps[1].prompt: Unknown step '3'",
        ),
        (
            "---\ntype: workflow\nsteps:\n- prompt: a\n  check: {contains: a, matches: b}\n---\n",
            "Expected exactly one of the keys `command`, `contains`",
        ),
        ("---\ntype: workflow\nsteps:\n- prompt: a\n  name: A b\n---\n", "Invalid step name 'A b'"),
        ("---\ntype: workflow\nsteps:\n- prompt: a\n  retries: 11\n---\n", "retries"),
    ],
)
def test_an_invalid_file_is_reported_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_command("fix", tmp_path / "fix.md", text)
    assert message in caught.value.advice() and str(tmp_path / "fix.md") in caught.value.advice()


def test_a_file_with_line_ends_of_windows_is_read(tmp_path: Path) -> None:
    assert read_command("fix", tmp_path / "fix.md", "---\r\nmodel: small\r\n---\r\nFix\r\n$1.\r\n").prompt == "Fix\n$1."


def test_steps_make_a_workflow_in_front_matter_and_in_yaml(tmp_path: Path) -> None:
    first = "- prompt: Write $1.\n  check: {command: ' make test '}\n"
    steps = f"type: workflow\nsteps:\n{first}- {{name: end, prompt: 'See {{{{ steps.1.output }}}}', agent: coder}}\n"
    for path, text in ((tmp_path / "do.yaml", steps), (tmp_path / "do.md", f"---\n{steps}---\n")):
        found = read_command("do", path, text)
        offset = text.count("\n", 0, text.index("- prompt")) + 1
        assert found.steps == (
            WorkflowStep("1", "Write $1.", check=StepCheck("command", "make test"), line=offset),
            WorkflowStep("end", "See {{ steps.1.output }}", "coder", line=offset + 2),
        )
        assert (found.facts.type, found.facts.help, found.prompt) == ("workflow", "Run 2 steps in order", "")


def test_a_file_of_another_program_keeps_its_meaning_and_says_what_is_lost(tmp_path: Path) -> None:
    text = "---\nargument-hint: [file] [how]\nallowed-tools: Bash(git:*)\nmodel: sonnet\ncolor: red\n---\nFix $1."
    found = read_command("fix", tmp_path / ".claude/commands/fix.md", text)
    assert (found.facts.argument, found.model) == ("[file] [how]", "")
    assert found.notes == ("moot has no such field: allowed-tools, color",)


def test_the_nearest_command_wins_and_subfolders_are_part_of_the_name(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    write(home / "commands/git/squash.md", "Squash.")
    write(home / "commands/fix.md", "Fix of the home.")
    (project / ".git").mkdir(parents=True)
    nearest = write(project / "src/.moot/commands/fix.md", "Fix of the folder.")
    other = write(project / ".claude/commands/fix.md", "Fix of the repository.")
    for path in (nearest, other):
        trust_file(home, path, path.read_text())
    found = file_commands(home, project / "src").commands
    assert {name: one.prompt for name, one in found.items()} == {"fix": "Fix of the folder.", "git:squash": "Squash."}
    assert file_commands(home, project).commands["fix"].prompt == "Fix of the repository."
    assert file_commands(home, None).commands["fix"].prompt == "Fix of the home."
    write(home / "commands/fix.md", "Changed.")
    assert file_commands(home, None).commands["fix"].prompt == "Changed."


def test_a_project_command_is_refused_until_it_is_trusted_and_after_it_changed(tmp_path: Path) -> None:
    home, path = tmp_path / "home", write(tmp_path / "project/.moot/commands/deep/do.md", "Do it.")
    found = file_commands(home, tmp_path / "project")
    assert not found.commands
    assert f"moot trust {tmp_path / 'project'}" in found.refused["deep:do"].advice()
    trust_file(home, path, path.read_text())
    assert file_commands(home, tmp_path / "project").commands["deep:do"].prompt == "Do it."
    path.write_text("Do something else.")
    assert "has changed" in file_commands(home, tmp_path / "project").refused["deep:do"].message
