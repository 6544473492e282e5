"""Custom tools: configured commands with placeholders, `{{argument}}`, for the arguments of a call.

A value is always quoted, so it can't become shell syntax. A value can't become an option either: a value that starts a word must not begin
with `-`, unless an earlier word of the same command is `--`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from moot.types.canonical import Json, JsonObject, dumps, empty
from moot.types.limits import TOOL_OUTPUT_CHARACTERS
from moot.types.templates import check_line, fill, fill_line, variables_in

COMMAND_CHARACTERS = 100_000
"""Maximum length of a command line."""

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")

Command: TypeAlias = "tuple[str, ...] | str"


@dataclass(frozen=True, slots=True)
class CommandTool:
    """One custom tool in the configuration."""

    name: str
    description: str
    command: Command
    """The words of one command, or a shell line."""
    parameters: JsonObject = field(default_factory=empty)
    """Complete JSON Schema of the arguments; see `schema_of`."""
    cwd: str = ""
    """Working directory, relative to the conversation's folder and inside it; empty = that folder."""
    timeout: float = 120.0
    network: bool = False
    """True if the command may use the network."""
    read_only: bool = False
    """True if the sandbox prevents all changes by the command, so that it needs no approval."""
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Additional environment variables, which may contain secrets."""
    max_output: int = TOOL_OUTPUT_CHARACTERS
    """Maximum number of characters of the output that a model gets. The rest is stored."""
    hidden: bool = False

    def line(self, arguments: JsonObject) -> str:
        """Return the shell line that runs for a call with valid arguments. Raise ValueError if a value can't be used."""
        values = {**_defaults(self.parameters), **arguments}
        for name, value in values.items():
            if "\0" in _text(value):
                raise ValueError(f"The argument {name!r} contains a NUL character.")
        templates = (self.command,) if isinstance(self.command, str) else self.command
        texts = {name: _text(values[name]) if name in values else "" for template in templates for name in variables_in(template)}
        _refuse_options(self.command, values)
        line = fill_line(self.command, texts) if isinstance(self.command, str) else shlex.join(_words(self.command, values))
        if len(line) > COMMAND_CHARACTERS:
            raise ValueError(f"The command line has more than {COMMAND_CHARACTERS:,} characters.")
        return line

    def identity(self) -> JsonObject:
        """Return everything that determines the effect of a call. An approval is valid only for this exact value."""
        command: Json = self.command if isinstance(self.command, str) else list[Json](self.command)
        limits: JsonObject = {"cwd": self.cwd, "network": self.network, "read_only": self.read_only}
        return {"command": command, "parameters": self.parameters, "env": dict(self.env), **limits}


FILE_NAME = "file"
_FILE = re.compile(r"(?<!\{)\{file\}(?!\})")
_OTHER = re.compile(r"\{(path|files|filename|file_path)\}")
"""Names that are likely meant as placeholders. Other braces belong to the command, as in `awk '{print}'`."""


@dataclass(frozen=True, slots=True)
class Check:
    """A configured formatter or check: a shell line that runs after a matching file has changed."""

    pattern: str
    """Glob for file names, or for paths below the conversation's folder if it contains a slash."""
    command: str
    """Shell line with `{file}` for the file."""
    formats: bool = False
    """True for a formatter, which may change the file. Other commands can't change anything."""
    folder: str = ""
    """Folder of the project that configures this command, which runs only for conversations there. Empty = it runs for all
    conversations."""

    def line(self, file: str) -> str:
        """Return the shell line for a file. Raise ValueError if its name can't be used."""
        template = check_template(self.command)
        return CommandTool("check", "", template, schema_of({}, template)).line({FILE_NAME: file})


def check_template(command: str) -> str:
    """Return the shell line of a formatter or check, with `{file}` written as `{{file}}`, the placeholder syntax of custom tools."""
    return _FILE.sub("{{file}}", command)


def problem_of_check(command: str) -> str:
    """Return why a shell line can't be a formatter or check; empty if it can."""
    template = check_template(command)
    if _OTHER.search(command) or any(name != FILE_NAME for name in placeholders(template)):
        return "Expected {file} as the only placeholder."
    return problem_of(template, schema_of({}, template))


def schema_of(parameters: JsonObject, command: Command) -> JsonObject:
    """Return the complete JSON Schema of a tool's arguments. Without `parameters`, each placeholder is a required string."""
    names = placeholders(command)
    if not parameters:
        properties: JsonObject = {name: {"type": "string"} for name in names}
        parameters = {"properties": properties, "required": list[Json](names)}
    return {"type": "object", "additionalProperties": False, **parameters}


def placeholders(command: Command) -> list[str]:
    """Return the names of the placeholders, each once, in order."""
    return [*dict.fromkeys(variables_in(command if isinstance(command, str) else list[Json](command)))]


def problem_of(command: Command, schema: JsonObject) -> str:
    """Return why the command can't be a template for these arguments; empty if it can."""
    properties, required = schema.get("properties"), schema.get("required")
    known = properties if isinstance(properties, dict) else {}
    names = placeholders(command)
    if unknown := next((name for name in names if name not in known), None):
        return f"The placeholder {unknown!r} is not in parameters.properties."
    if unused := next((name for name in known if name not in names), None):
        return f"The argument {unused!r} is not used in the command."
    needed = {str(name) for name in required} if isinstance(required, list) else set[str]()
    for name in names:
        facts = known[name]
        is_list = isinstance(facts, dict) and facts.get("type") == "array"
        if is_list and (isinstance(command, str) or any(name in variables_in(word) and not _is_whole(word) for word in command)):
            return (
                f"The argument {name!r} is a list, so {{{{{name}}}}} must be a whole word of a command that is written as a list of words."
            )
        has_value = name in needed or (isinstance(facts, dict) and "default" in facts)
        if isinstance(command, str) and not has_value:
            return f"The argument {name!r} must be required or have a default, because a shell line can't leave it out."
    try:
        return next(filter(None, (_place_problem(words) for words in _commands(command))), "")
    except ValueError as error:
        return str(error)


# ── where placeholders may be ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_MARK = "\ue000"
"""Replacement for a placeholder while a line is split into words."""

_PLACEHOLDER = re.compile(r"\{\{\s*\w+\s*\}\}")
_OPERATORS = ";|&()\n"
_ASSIGNMENT = re.compile(r"\w+=")
_AMOUNT = re.compile(r"\d+(\.\d+)?[smhd]?")

_RUNNERS = frozenset(
    (
        *("env", "sudo", "doas", "xargs", "nohup", "nice", "ionice", "time", "timeout", "command", "builtin", "exec", "stdbuf"),
        *("setsid", "chroot", "flock"),
    )
)
"""Programs that run the command after their options."""
_EVALUATORS = frozenset(("eval", "source", ".", "trap", "alias", "ssh", "su", "watch", "parallel"))
"""Programs that treat their arguments as a shell line, so that quotes are lost."""
_INTERPRETERS = re.compile(r"(ba|da|z|k|fi)?sh|python[\d.]*|perl|ruby|node|deno|bun|php|lua|osascript|pwsh")
_CODE_OPTION = re.compile(r"-[A-Za-z]*[ceEr]|--eval|--command|-Command|--print|-p")
_CODE_FIRST = frozenset(["awk", "gawk", "mawk", "nawk", "sed"])
"""Programs that run their first operand as code."""


def _is_whole(word: str) -> bool:
    return _PLACEHOLDER.fullmatch(word) is not None


def _commands(command: Command) -> Iterator[list[str]]:
    """Yield the words of each command, with `_MARK` for placeholders. Raise ValueError if the line can't be parsed."""
    if not isinstance(command, str):
        yield [_PLACEHOLDER.sub(_MARK, word) for word in command]
        return
    check_line(command)
    lexer = shlex.shlex(_PLACEHOLDER.sub(_MARK, command), posix=True, punctuation_chars=f"{_OPERATORS}<>")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        tokens = [*lexer]
    except ValueError as error:
        raise ValueError(f"The shell line can't be parsed: {str(error).lower()}.") from error
    words: list[str] = []
    for token in tokens:
        if set(token) <= {*_OPERATORS}:
            yield words
            words = []
        elif token not in ("{", "}", "!", "then", "do", "else", "elif", "if", "while", "until"):
            words.append(token)
    yield words


def _place_problem(words: Sequence[str]) -> str:
    """Return why a placeholder's value could be run as code at its place in a command; empty if no placeholder's value could."""
    at = _program(words)
    if any(_MARK in word for word in words[: at + 1]):
        return "A placeholder can't be the program to run, or in an assignment before it."
    if at >= len(words):
        return ""
    name = words[at].rpartition("/")[2]
    for place, word in enumerate(words[at + 1 :], at + 1):
        if _MARK not in word:
            continue
        before = words[at + 1 : place]
        is_code = bool(before) and _INTERPRETERS.fullmatch(name) and _CODE_OPTION.fullmatch(before[-1])
        is_first = name in _CODE_FIRST and all(each.startswith("-") for each in before)
        runs = bool(before) and before[-1] in ("-exec", "-execdir", "-ok", "-okdir")
        if name in _EVALUATORS or is_code or is_first or runs:
            return f"A placeholder can't be in code that {name!r} runs, because no quoting is safe there."
    return ""


def _program(words: Sequence[str]) -> int:
    """Return the index of the word that names the program, skipping assignments and programs that only run another one, such as `nice`."""
    at = 0
    while at < len(words):
        if words[at].rpartition("/")[2] in _RUNNERS:
            at += 1
            while at < len(words) and (words[at].startswith("-") or _AMOUNT.fullmatch(words[at])):
                at += 1
        elif _ASSIGNMENT.match(words[at]) and _MARK not in words[at]:
            at += 1
        else:
            break
    return at


# ── filling ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _refuse_options(command: Command, values: Mapping[str, Json]) -> None:
    """Raise ValueError if a value that starts a word begins with `-`, because the program would take it for an option."""
    names = iter([*variables_in(command if isinstance(command, str) else list[Json](command))])
    for words in _commands(command):
        is_operand = False
        for word in words:
            is_operand = is_operand or word == "--"
            starts = len(word) - len(word.lstrip(_MARK))
            for at in range(word.count(_MARK)):
                name = next(names)
                value = values.get(name)
                if at < starts and not is_operand and any(text.startswith("-") for text in _texts(value)):
                    raise ValueError(f"The argument {name!r} can't start with '-', because the program would interpret it as an option.")


def _words(command: Iterable[str], values: Mapping[str, Json]) -> Iterator[str]:
    """Yield the words with their values filled in. A word whose argument was omitted is omitted too; a list becomes several words."""
    texts = {name: _text(value) for name, value in values.items()}
    for word in command:
        names = [*variables_in(word)]
        if any(name not in values for name in names):
            continue
        if _is_whole(word) and isinstance(values[names[0]], list):
            yield from _texts(values[names[0]])
        else:
            yield cast("str", fill(word, texts))


def _defaults(schema: JsonObject) -> JsonObject:
    properties = schema.get("properties")
    facts = properties.items() if isinstance(properties, dict) else ()
    return {name: each["default"] for name, each in facts if isinstance(each, dict) and "default" in each}


def _texts(value: Json) -> list[str]:
    return [_text(item) for item in value] if isinstance(value, list) else [_text(value)]


def _text(value: Json) -> str:
    return value if isinstance(value, str) else "" if value is None else dumps(value).decode()
