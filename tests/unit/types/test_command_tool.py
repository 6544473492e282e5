"""Command templates: no value becomes syntax, an option or a program."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.types.canonical import JsonObject
from moot.types.command_tool import Command, CommandTool, placeholders, problem_of, schema_of

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=30)


def tool(command: Command, parameters: JsonObject | None = None) -> CommandTool:
    schema = schema_of(parameters or {}, command)
    assert problem_of(command, schema) == ""
    return CommandTool("it", "Run it.", command, schema)


@given(TEXTS)
def test_a_value_stays_one_word_of_a_list(value: str):
    assert shlex.split(tool(("printf", "%s", "--", "{{text}}")).line({"text": value})) == ["printf", "%s", "--", value]


@pytest.mark.parametrize("place", ["{{text}}", '"{{text}}"', "'{{text}}'"])
@pytest.mark.parametrize("value", ["a b", "'", '"', "$(id)", "`id`", "; id", "a\nid", "\\", "$HOME", "*", "~", "&& id", "!x", "é\u202e"])
def test_bash_passes_a_value_on_unchanged_in_any_quotes(place: str, value: str):
    line = tool(f"printf %s -- {place} | cat").line({"text": value})
    # the builtin printf takes "--" as the end of its options only before the format, so it prints it
    assert subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True).stdout == f"--{value}"


@pytest.mark.parametrize("command", [("git", "log", "{{x}}"), "git log {{x}}", 'git log "{{x}}"', "git log {{x}} -- y", ("git", "{{x}}y")])
def test_a_value_can_not_become_an_option(command: Command):
    with pytest.raises(ValueError, match="can't start with '-'"):
        tool(command).line({"x": "--output=/etc/passwd"})


def test_a_second_placeholder_of_a_word_can_not_become_an_option_either():
    with pytest.raises(ValueError, match="'b' can't start with '-'"):
        tool(("ls", "{{a}}{{b}}")).line({"a": "", "b": "-R"})


def test_the_items_of_a_list_can_not_become_options():
    files = tool(("ls", "{{files}}"), {"properties": {"files": {"type": "array", "items": {"type": "string"}}}})
    assert files.line({"files": ["a b", "c"]}) == "ls 'a b' c"
    with pytest.raises(ValueError, match="can't start with '-'"):
        files.line({"files": ["a", "-R"]})


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (("ls", "--", "{{x}}"), "ls -- -a"),
        ("ls -- {{x}}", "ls -- -a"),
        (("ls", "--sort={{x}}"), "ls --sort=-a"),
        ("ls -w'{{x}}'", "ls -w'-a'"),
    ],
)
def test_a_value_may_start_with_a_dash_behind_two_dashes_or_inside_an_option(command: Command, line: str):
    assert tool(command).line({"x": "-a"}) == line


def test_two_dashes_of_one_command_do_not_cover_the_next():
    with pytest.raises(ValueError, match="can't start with '-'"):
        tool("ls -- x; ls {{x}}").line({"x": "-a"})


@pytest.mark.parametrize(
    "command",
    [
        *("{{x}} y", "true && {{x}}", "true\n{{x}}", "yes | {{x}}", "FOO=1 {{x}}", "FOO={{x}} y", "if {{x}}; then y; fi", "({{x}})"),
        *("env {{x}}", "xargs -0 {{x}}", "sudo -n {{x}}", "timeout 5s {{x}}", "nice -n 5 {{x}}", "exec {{x}}"),
        *("bash -c '{{x}}'", "sh -ec {{x}}", "python3 -c {{x}}", "eval {{x}}", "ssh host {{x}}", "find . -exec {{x}} +", "awk {{x}} file"),
        *("echo $(ls {{x}})", "echo `ls {{x}}`", "cat <<E\n{{x}}\nE", "[[ {{x}} ]]", "echo '{{x}}"),
        *(("{{x}}", "y"), ("bash", "-c", "ls {{x}}"), ("env", "A=b", "{{x}}")),
    ],
)
def test_a_value_can_not_become_code_or_a_program(command: Command):
    assert problem_of(command, schema_of({}, command))


@pytest.mark.parametrize(
    "command", ["bash script.sh {{x}}", "grep -e {{x}} file", "cat {{x}} > {{y}}", "env A=b ls {{x}}", ("python", "s.py", "{{x}}")]
)
def test_ordinary_places_are_accepted(command: Command):
    assert problem_of(command, schema_of({}, command)) == ""


def test_without_parameters_every_placeholder_is_a_required_text():
    command = ("grep", "{{ pattern }}", "{{file}}")
    assert placeholders(command) == ["pattern", "file"]
    schema = schema_of({}, command)
    assert schema["required"] == ["pattern", "file"]
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize(
    ("command", "properties", "problem"),
    [
        (("ls", "{{x}}"), {"y": {}}, "The placeholder 'x' is not in parameters"),
        (("ls",), {"y": {}}, "The argument 'y' is not used"),
        ("ls {{x}}", {"x": {}}, "must be required or have a default"),
        ("ls {{x}}", {"x": {"type": "array", "default": []}}, "is a list"),
        (("ls", "a{{x}}"), {"x": {"type": "array"}}, "is a list"),
    ],
)
def test_parameters_and_placeholders_have_to_fit(command: Command, properties: JsonObject, problem: str):
    assert problem in problem_of(command, schema_of({"properties": properties}, command))


def test_a_word_of_an_argument_that_was_left_out_is_left_out():
    log = tool(
        ("git", "log", "-n{{count}}", "--", "{{files}}"),
        {"properties": {"count": {"type": "integer", "default": 5}, "files": {"type": "array"}}},
    )
    assert log.line({}) == "git log -n5 --"
    assert log.line({"count": 3, "files": ["-a"]}) == "git log -n3 -- -a"


def test_a_null_character_and_a_very_long_line_are_refused():
    with pytest.raises(ValueError, match="NUL"):
        tool(("ls", "{{x}}")).line({"x": "a\0b"})
    with pytest.raises(ValueError, match="100,000"):
        tool(("ls", "{{x}}")).line({"x": "a" * 100_001})
