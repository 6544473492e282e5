"""Command-line arguments: their declarations in command signatures, and the conversion of parsed values to a function call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

Kind: TypeAlias = Literal["", "agent", "conversation", "file", "format", "model", "provider", "skill", "tool"]

LATEST = "@latest"
"""Value of `-c` without an id: the newest conversation in the working directory."""

PREVIOUS = "@previous"
"""Value of `--reply`: the conversation used last, in any directory."""

ALL_TOOLS = "@all"
"""Value of `--tools` without names."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """Metadata of one command argument, used in `Annotated`.

    An argument whose type is a dataclass needs no `Parameter`, because each field of the dataclass is an option.
    """

    name: str | tuple[str, ...] = ()
    """Option names, long ones first. Empty means `--` and the argument's own name."""
    help: str = ""
    metavar: str = ""
    """Name of the value in help pages. Empty means that it is derived from the kind, the type or the argument's name."""
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    """Exclusive minimum."""
    kind: Kind = ""
    """Kind of values that shell completion offers, in addition to the choices of a Literal."""
    implied: str = ""
    """Value that is used if the option is given without a value. Empty means that a value is required."""
    accepts: Callable[[str], bool] | None = None
    """For options with `implied`: a function that returns whether the next word is the option's value.
    A value after `=` is always accepted.
    """
    parse: bool = True
    """False for an argument that moot itself passes. It is not parsed from the command line."""


Plain = Parameter(parse=False)
"""Marker for the argument `output: Lines` of commands that run without an event loop."""

Limit = Annotated[int, Parameter(metavar="N", minimum=1, maximum=200, help="Maximum number of results, from 1 to 200.")]
Cursor = Annotated[str | None, Parameter(metavar="CURSOR", help="Position to start from: the value of 'next_cursor' on the previous page.")]
AsJson = Annotated[bool, Parameter(name="--json", help="Print one JSON document to stdout.")]


REQUIRED = inspect.Parameter.empty
"""Value of `Argument.default` if the argument has no default."""


@dataclass(frozen=True, slots=True)
class Call:
    """A command and the arguments to call it with."""

    command: Callable[..., Any]
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    bare: bool
    """See `Command.bare`."""
    stays: bool = False
    """See `Command.stays`."""

    def run(self, output: object) -> Any:
        """Call the command. Pass `output` if the command has such an argument."""
        passed = {"output": output} if "output" in inspect.signature(self.command).parameters else {}
        return self.command(*self.args, **self.keywords, **passed)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument on the command line."""

    name: str
    """Name of the function's argument or of the dataclass field."""
    flags: tuple[str, ...]
    """Option names. Empty for a positional argument."""
    type: type
    """Type of one value: str, int, float, bool or Path."""
    many: bool
    """True if the option may be repeated."""
    choices: tuple[str, ...]
    """Allowed values. Empty means any."""
    default: Any
    parameter: Parameter
    rest: bool = False
    """True if this positional argument takes all remaining words."""
    group: str = ""
    """Name of the function's argument whose dataclass contains this option as a field. Empty if the option is not a field."""

    @property
    def required(self) -> bool:
        return self.default is REQUIRED and not self.rest

    @property
    def metavar(self) -> str:
        """Name of the value in help pages and errors."""
        if self.parameter.metavar:
            return self.parameter.metavar
        if self.parameter.kind and self.parameter.kind != "file":
            return self.parameter.kind.upper()
        if self.type is Path or self.parameter.kind == "file":
            return "PATH"
        return "N" if self.type in (int, float) else self.name.strip("_").replace("_", "-").upper()


def arguments_of(command: Callable[..., Any]) -> tuple[Argument, ...]:
    """Return the arguments of a command in the order of its signature."""
    annotated, bare = get_type_hints(command, include_extras=True), get_type_hints(command)
    found: list[Argument] = []
    for item in inspect.signature(command).parameters.values():
        parameter = _parameter(annotated[item.name])
        if not parameter.parse:
            continue
        if is_dataclass(options := bare[item.name]):
            of_fields = get_type_hints(options, include_extras=True)
            for field in fields(options):
                parameter = _parameter(of_fields[field.name])
                default = REQUIRED if field.default is MISSING else field.default
                value_type = _value_type(get_type_hints(options)[field.name])
                found.append(Argument(field.name, _flags(field.name, parameter), *value_type, default, parameter, group=item.name))
        else:
            flags = _flags(item.name, parameter) if item.kind is item.KEYWORD_ONLY else ()
            rest = item.kind is item.VAR_POSITIONAL
            found.append(Argument(item.name, flags, *_value_type(bare[item.name]), item.default, parameter, rest))
    return tuple(found)


def call_arguments(
    command: Callable[..., Any], arguments: Sequence[Argument], values: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional and keyword arguments for a call. The keys of `values` are the names of the arguments."""
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    for argument in arguments:
        if argument.group:
            groups.setdefault(argument.group, {})
        if argument.name in values and argument.group:
            groups[argument.group][argument.name] = values[argument.name]
        elif argument.rest:
            positional += values.get(argument.name, ())
        elif not argument.flags:
            positional.append(values.get(argument.name, argument.default))
        elif argument.name in values:
            keywords[argument.name] = values[argument.name]
    types = get_type_hints(command) if groups else {}
    return tuple(positional), {**keywords, **{name: types[name](**options) for name, options in groups.items()}}


def _flags(name: str, parameter: Parameter) -> tuple[str, ...]:
    if parameter.name:
        return (parameter.name,) if isinstance(parameter.name, str) else parameter.name
    return (f"--{name.strip('_').replace('_', '-')}",)


def _parameter(annotation: Any) -> Parameter:
    """Return the `Parameter` of an annotation or of one of its alternatives."""
    if get_origin(annotation) is Annotated:
        return next((item for item in annotation.__metadata__ if isinstance(item, Parameter)), Parameter())
    if get_origin(annotation) in (Union, UnionType):
        return next((found for option in get_args(annotation) if (found := _parameter(option)) != Parameter()), Parameter())
    return Parameter()


def _value_type(annotation: Any) -> tuple[type, bool, tuple[str, ...]]:
    """Return the type of one value, whether there may be several, and the allowed values."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        return _value_type(next(option for option in get_args(annotation) if option is not type(None)))
    if origin is Literal:
        return str, False, tuple(str(choice) for choice in get_args(annotation))
    if origin in (list, tuple):
        return _value_type(get_args(annotation)[0])[0], True, ()
    return cast("type", annotation), False, ()
