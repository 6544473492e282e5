"""Filling in the templates of custom commands."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from moot.commands.custom import expand, hooks_of
from moot.errors import UsageError
from moot.types.command import CommandDefinition, CommandFacts, CommandParameter


def command(prompt: str, *parameters: CommandParameter, **facts: Any) -> CommandDefinition:
    return CommandDefinition(CommandFacts("fix", parameters=parameters, **facts), prompt)


def text_of(prompt: str, argument: str = "", *parameters: CommandParameter, **more: Any) -> str:
    definition = command(prompt, *parameters)
    return expand(definition, definition.prompt, argument, **more).text


@pytest.mark.parametrize(
    ("prompt", "argument", "text"),
    [
        ("Fix $ARGUMENTS now.", "a and b", "Fix a and b now."),
        ("$2 then $1, $3.", "'one word' two", "two then one word, ."),
        ("It's $1", "isn't easy", "It's isn't"),  # an apostrophe is not a quote that must be closed
        ("Open $FILE in $HOME for $5.", "", "Open src/app.py in $HOME for ."),
        ("No placeholder.", "but arguments", "No placeholder.\n\nbut arguments"),
        ("No placeholder.", "", "No placeholder."),
        ("Say $1", "$2 $1", "Say $2"),  # values are not filled in again
    ],
)
def test_placeholders_are_replaced_once(prompt: str, argument: str, text: str) -> None:
    assert text_of(prompt, argument, file="src/app.py") == text


def test_named_arguments_have_defaults_and_choices_and_the_last_one_takes_the_rest() -> None:
    level = CommandParameter("level", required=True, choices=("low", "high"))
    what = CommandParameter("what", default="everything")
    assert text_of("$level: $what", "high the parser and its tests", level, what) == "high: the parser and its tests"
    assert text_of("$level: $what", "low", level, what) == "low: everything"
    for argument, message in (("", "'level' is missing"), ("middle", "Invalid level 'middle'")):
        with pytest.raises(UsageError, match=message):
            text_of("$level: $what", argument, level, what)


def test_values_in_shell_lines_stay_one_word() -> None:
    definition = command("See !`printf '<%s>' $1 \"$2\" $HOME_OF`.")
    expanded = expand(definition, definition.prompt, "\"$(touch x); 'y\" 'a b'")
    assert subprocess.run(["bash", "-c", expanded.lines[0]], capture_output=True, check=True).stdout.decode() == "<$(touch x); 'y><a b>"
    assert expanded.text.startswith(f"See `{expanded.lines[0]}`.")
    shell = {"tool": "shell", "arguments": {"command": expanded.lines[0]}, "command": "fix"}
    assert hooks_of(expanded.lines, command="fix") == {"hooks": {"before_run": [shell]}}
    assert hooks_of(()) == {}


@pytest.mark.parametrize("line", ["echo $(cat $1)", "cat <<E $1", "echo {{prompt}}", "echo '{{response}}' $1"])
def test_shell_lines_that_can_not_be_quoted_are_refused(line: str) -> None:
    with pytest.raises(UsageError, match=r"of /fix can't"):
        text_of(f"See !`{line}`", "x")


def test_an_argument_that_a_hook_would_fill_in_is_refused() -> None:
    with pytest.raises(UsageError, match=r"An argument of /fix can't contain \{\{response\}\}"):
        text_of("!`echo $1`", "{{response}}")


def test_a_shell_line_without_placeholders_may_use_everything() -> None:
    definition = command("!`echo $(git rev-parse HEAD) | head -c 7`")
    assert expand(definition, definition.prompt, "").lines == ("echo $(git rev-parse HEAD) | head -c 7",)
