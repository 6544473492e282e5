"""The whole parser: help, mistakes with the nearest name, and every command line that is not plain."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import cyclopts
from cyclopts import App, CycloptsError, UnknownCommandError, UnusedCliTokensError
from cyclopts.validators import Number

from moot.cli.command import Command, Group
from moot.cli.reading import Call
from moot.cli.slots import Slot, call_of, slots_of
from moot.cli.tree import TREE
from moot.errors import UsageError
from moot.plugins.registry import attribute


def parse(words: Sequence[str]) -> Call:
    """The call that a command line stands for; that of the help when it asks for help. Raises UsageError."""
    try:
        command, bound, _ = build(words).parse_args(list(words))
    except CycloptsError as error:
        raise usage(error) from error
    return Call(command, bound.args, bound.kwargs, True) if not isinstance(command, _Given) else command.call(bound)


def build(words: Sequence[str] = ()) -> App:
    """The tree of commands as the parser has it. Only the command that the words name is imported."""
    return _group("moot", TREE, words)


def usage(error: CycloptsError) -> UsageError:
    """A mistake in our own words, with the nearest name and the next move."""
    chain = " ".join(error.command_chain or ())
    fix = f"moot {chain} --help" if chain else "moot --help"
    if isinstance(error, UnknownCommandError) and error.app is not None and error.unused_tokens:
        return UsageError(_unknown_command(error.unused_tokens[0], [name for name in error.app if not name.startswith("-")]), fix=fix)
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        words = f"too many arguments: {', '.join(map(repr, error.unused_tokens))}; words that belong together stand in quotes"
        return UsageError(words, fix=fix)
    return UsageError(_lower(str(error)), fix=fix)


class _Given:
    """A command as the parser knows it: one flat signature."""

    def __init__(self, command: Callable[..., Any], bare: bool) -> None:
        self._command = command
        self._bare = bare
        self._slots = slots_of(command)
        parameters = [_parameter(slot) for slot in self._slots]
        self.__name__ = command.__name__
        self.__signature__ = inspect.Signature(parameters)
        self.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}

    def __call__(self, *args: Any, **keywords: Any) -> None:
        """Never called: `call` says what is."""

    def call(self, bound: inspect.BoundArguments) -> Call:
        values = {name: value for name, value in bound.arguments.items() if value is not None}
        args, keywords = call_of(self._command, self._slots, values)
        return Call(self._command, args, keywords, self._bare)


def _group(name: str, group: Group, words: Sequence[str], above: Sequence[str] = ()) -> App:
    app = App(
        name=name,
        help=group.help(),
        usage=f"Usage: {' '.join((*above, name))} {'[COMMAND]' if group.alone else 'COMMAND'}",
        version_flags=(),
        help_format="plaintext",
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    for key, item in group.commands.items():
        named = bool(words) and words[0] == key
        if isinstance(item, Group):
            app.command(_group(key, item, words[1:] if named else (), (*above, name)), name=key)
        elif named:
            app.command(_Given(attribute(item.path), item.bare), name=key, help=item.help())
        else:
            app.command(partial(_elsewhere, item), name=key, help=item.help())
    return app


def _elsewhere(command: Command) -> None:
    """Stands for a command that the words do not name."""


def _parameter(slot: Slot) -> inspect.Parameter:
    said = slot.parameter
    limits = None
    if (said.least, said.most, said.above) != (None, None, None):
        limits = Number(gte=said.least, lte=said.most, gt=said.above)
    words = cyclopts.Parameter(
        name=list(slot.flags) or None, help=said.help, negative=(), validator=limits, show_default=slot.kind is not bool
    )
    place = inspect.Parameter.VAR_POSITIONAL if slot.rest else inspect.Parameter.POSITIONAL_ONLY
    kind = inspect.Parameter.KEYWORD_ONLY if slot.flags else place
    return inspect.Parameter(slot.name, kind, default=slot.default, annotation=Annotated[slot.type, words])


def _unknown_command(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ";"
    return f"unknown command {name!r}{hint} known: {', '.join(known)}"


def _lower(text: str) -> str:
    words = text.strip()
    return words[:1].lower() + words[1:]
