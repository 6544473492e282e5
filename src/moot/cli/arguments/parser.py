"""The command-line parser. Only the command that is run is imported; argparse parses its options."""

from __future__ import annotations

import argparse
import itertools
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from moot.cli.arguments.signatures import Argument, Call, arguments_of, call_arguments
from moot.cli.remote.address import is_requested, remote_url, split_options, take_options, unsupported
from moot.cli.tree import TREE
from moot.cli.tree.nodes import Command, Group
from moot.errors import UsageError
from moot.plugins.registry import attribute

HELP_FLAGS = ("--help", "-h")
_TYPING_ERROR = 0.8
"""Minimum similarity at which the first of two words is treated as a mistyped command, not as part of a prompt."""
_HELP = "moot.cli.arguments.help:show_help"
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parse(words: Sequence[str]) -> Call:
    """Return the call for a command line, or a call that shows the help page if help is requested.
    Raise UsageError if the command line is invalid.
    """
    if list(words[:1]) == ["help"] and _asks_for_help(words):
        words = [*words[1:], "--help"]
    item, path, rest = command_at(words)
    options = rest[: rest.index("--")] if "--" in rest else rest
    if isinstance(item, Group) and item.default and (not options or (options[0].startswith("-") and options[0] not in HELP_FLAGS)):
        item, path = item.commands[item.default], (*path, item.default)
    if isinstance(item, Group) and item.prompt is not None and _is_prompt(item, options, rest):
        item = item.prompt
    if isinstance(item, Group):
        needs_help = item.prompt is not None and any(word in HELP_FLAGS for word in options)
        needs_help = needs_help and _starts_prompt(options) and not _is_mistyped(item, options)
        if options and options[0] not in HELP_FLAGS and not needs_help:
            kind, nearest = ("option", "") if options[0].startswith("-") else ("command", _suggestion(options[0], item.commands))
            fix = f"Run '{' '.join(('moot', *path))} --help' to list the commands."
            if item.prompt is not None and not options[0].startswith("-"):
                fix += f" To send a prompt, use quotes: moot run {shlex.quote(' '.join(_plain(options)))}"
            raise UsageError(f"Unknown {kind} '{options[0]}'.{nearest}", fix=fix)
        return Call(attribute(_HELP), (path,), {}, bare=True)
    if any(word in HELP_FLAGS for word in options):
        return Call(attribute(_HELP), (path,), {}, bare=True)
    command = attribute(item.path)
    arguments = arguments_of(command)
    _check_remote(item, path, options, arguments)
    try:
        values = _values(arguments, options, rest[len(options) + 1 :])
    except UsageError as error:
        error.fix = error.fix or f"Run '{' '.join(('moot', *path))} --help' for usage."
        raise
    args, keywords = call_arguments(command, arguments, values)
    return Call(command, args, keywords, item.bare, item.stays)


def _check_remote(item: Command, path: Sequence[str], options: Sequence[str], arguments: Sequence[Argument]) -> None:
    """Raise UsageError if the command line names a server, but the command can't use one."""
    own = any("--url" in argument.flags for argument in arguments)
    if not item.remote and (remote_url() or (is_requested(options) and not own)):
        raise unsupported(" ".join(path))


def remote_options(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the environment variables for the options `--url` and `--token-file`, and the words without these options.

    Other commands can have options with the same names, so they are only read before these commands.
    """
    found, rest = split_options(words)
    item = command_at(rest)[0]
    if isinstance(item, Command) and not item.remote:
        return found, rest
    more, rest = take_options(rest)
    return found | more, rest


def _is_prompt(group: Group, options: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether words that don't name a command are a prompt or its options:
    several words, one word with a space, or options first.
    """
    if any(word in HELP_FLAGS for word in options):
        return False
    return not _is_mistyped(group, options) and (_starts_prompt(options) or len(words) > len(options))


def _is_mistyped(group: Group, options: Sequence[str]) -> bool:
    """Return whether the words are a mistyped command followed by one more word, such as `moot serch word` or `moot chta list`."""
    plain = _plain(options)
    if len(plain) != 2:
        return False
    meant = group.commands.get(_nearest(plain[0], group.commands))
    return bool(_nearest(plain[0], group.commands, _TYPING_ERROR)) or (isinstance(meant, Group) and plain[1] in meant.commands)


def _asks_for_help(words: Sequence[str]) -> bool:
    """Return whether the words after `help` name a command, if need be a mistyped one. `moot help me understand x` is a prompt."""
    if len(words) < 3 or words[1] in TREE.commands or _is_mistyped(TREE, words[1:]):
        return True
    return bool(_nearest(words[1], TREE.commands, _TYPING_ERROR))


def _starts_prompt(options: Sequence[str]) -> bool:
    """Return whether the words are options, several words, or one word with a space."""
    plain = _plain(options)
    return not plain or len(plain) > 1 or " " in plain[0] or "\n" in plain[0]


def _plain(options: Sequence[str]) -> list[str]:
    """Return the words before the first option."""
    return list(itertools.takewhile(lambda word: not word.startswith("-"), options))


def command_at(words: Sequence[str]) -> tuple[Command | Group, tuple[str, ...], list[str]]:
    """Return the command or group named by the first words, its path, and the remaining words."""
    level: Group | Command = TREE
    path: list[str] = []
    for word in words:
        if isinstance(level, Command) or word not in level.commands:
            break
        path.append(word)
        level = level.commands[word]
    return level, tuple(path), list(words[len(path) :])


def wants_json(words: Sequence[str]) -> bool:
    """Return whether the command line asks for JSON output. Errors are then printed as JSON too."""
    options = words[: words.index("--")] if "--" in words else words
    return any(word in ("--json", "--jsonl") for word in options)


def _values(arguments: Sequence[Argument], words: Sequence[str], literal: Sequence[str]) -> dict[str, Any]:
    """Parse the words of one command. `literal` are the words after `--`, which are never options."""
    by_flag = {flag: argument for argument in arguments for flag in argument.flags}
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False, argument_default=argparse.SUPPRESS)
    for argument in arguments:
        if argument.flags:
            parser.add_argument(
                *argument.flags, dest=argument.name, action=_Store, nargs=0 if argument.type is bool else None, const=argument
            )
    try:
        namespace, plain = parser.parse_known_args(_with_values(by_flag, words))
    except argparse.ArgumentError as error:
        names = (error.argument_name or "").split("/")
        typed = next((word for word in reversed(words) if word in names), names[0])
        raise UsageError(f"Option '{typed}' requires a value.") from error
    for word in plain:
        if word.startswith("-") and not re.fullmatch(r"-\d+|-\d*\.\d+", word):
            flag = word.partition("=")[0]
            nearest = _suggestion(flag, [name for name in by_flag if name.startswith("--")])
            raise UsageError(f"Unknown option '{flag}'.{nearest}")
    for argument in arguments:
        if argument.flags and argument.required and not argument.group and not hasattr(namespace, argument.name):
            raise UsageError(f"Missing option '{argument.flags[0]}'.")
    return vars(namespace) | _positional([item for item in arguments if not item.flags], [*plain, *literal])


class _Store(argparse.Action):
    """Action for argparse that converts and stores an option's value. Only repeatable options may occur more than once."""

    def __call__(self, parser: object, namespace: argparse.Namespace, values: Any, option_string: str | None = None) -> None:
        argument: Argument = self.const
        flag = option_string or argument.flags[0]
        value = True if argument.type is bool else _convert(argument, str(values), f"'{flag}'")
        if argument.many:
            value = [*getattr(namespace, self.dest, ()), value]
        elif hasattr(namespace, self.dest):
            raise UsageError(f"Option '{flag}' was given more than once.")
        setattr(namespace, self.dest, value)


def _with_values(by_flag: dict[str, Argument], words: Sequence[str]) -> list[str]:
    """Rewrite syntax that argparse cannot parse: options whose value may be omitted, and `--flag=true`."""
    found: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        flag, equals, text = word.partition("=")
        argument = by_flag.get(flag)
        if argument is None:
            found.append(word)
        elif argument.parameter.implied and not equals:
            accepts = argument.parameter.accepts
            taken = accepts is not None and bool(rest) and accepts(rest[0])
            found.append(f"{argument.flags[0]}={rest.pop(0) if taken else argument.parameter.implied}")
        elif argument.type is bool and equals:
            if text.lower() not in _BOOLEANS:
                raise UsageError(f"Invalid value {text!r} for '{flag}': expected true or false.")
            found += [flag] if _BOOLEANS[text.lower()] else []
        else:
            found.append(word)
            if not equals and argument.type is not bool and rest:
                found.append(rest.pop(0))
    return found


def _positional(arguments: Sequence[Argument], words: Sequence[str]) -> dict[str, Any]:
    rest = list(words)
    values: dict[str, Any] = {}
    for argument in arguments:
        if argument.rest:
            values[argument.name] = [_convert(argument, word, argument.metavar) for word in rest]
            rest = []
        elif rest:
            values[argument.name] = _convert(argument, rest.pop(0), argument.metavar)
        elif argument.required:
            raise UsageError(f"Missing argument {argument.metavar}.")
    if rest:
        raise UsageError(f"Unexpected argument {rest[0]!r}. Put quotes around words that belong together.")
    return values


def _convert(argument: Argument, text: str, name: str) -> Any:
    if argument.choices:
        if text not in argument.choices:
            nearest = _suggestion(text, argument.choices)
            raise UsageError(f"Invalid value {text!r} for {name}: expected one of {', '.join(argument.choices)}.{nearest}")
        return text
    if argument.type not in (int, float):
        return argument.type(text)
    try:
        number = argument.type(text)
    except ValueError as error:
        expected = "an integer" if argument.type is int else "a number"
        raise UsageError(f"Invalid value {text!r} for {name}: expected {expected}.") from error
    limits = argument.parameter
    if limits.minimum is not None and not number >= limits.minimum:
        raise UsageError(f"Invalid value {number} for {name}: the minimum is {limits.minimum:g}.")
    if limits.maximum is not None and not number <= limits.maximum:
        raise UsageError(f"Invalid value {number} for {name}: the maximum is {limits.maximum:g}.")
    if limits.above is not None and not number > limits.above:
        raise UsageError(f"Invalid value {number} for {name}: it must be greater than {limits.above:g}.")
    return number


def _suggestion(name: str, known: Iterable[str]) -> str:
    """Return a 'Did you mean' sentence with the most similar known name, ignoring leading dashes. Empty if no name is similar."""
    nearest = _nearest(name, known)
    return f" Did you mean '{nearest}'?" if nearest else ""


def _nearest(name: str, known: Iterable[str], similarity: float = 0.6) -> str:
    bare = {other.lstrip("-"): other for other in known}
    nearest = attribute("difflib:get_close_matches")(name.lstrip("-"), list(bare), n=1, cutoff=similarity)
    return bare[nearest[0]] if nearest else ""
