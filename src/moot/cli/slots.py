"""A command's signature as a list of what may be typed, and back: what was typed as the arguments of its call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from moot.cli.parameters import Parameter

REQUIRED = inspect.Parameter.empty
"""The default of what must be given."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One argument as it is typed."""

    name: str
    """Of the function's argument, or of a field of the dataclass that the argument is."""
    flags: tuple[str, ...]
    """Empty = it goes by its place."""
    type: Any
    """As annotated, without our own words: `str | None`, `list[Path]`, a Literal…"""
    default: Any
    parameter: Parameter
    rest: bool = False
    """Takes every word that is left."""
    group: str = ""
    """The argument whose dataclass has it as a field; empty = none."""

    @property
    def kind(self) -> type:
        """str, int, float, bool or Path."""
        return _plain(self.type)[0]

    @property
    def many(self) -> bool:
        return _plain(self.type)[1]

    @property
    def choices(self) -> tuple[str, ...]:
        """The only values; empty = any."""
        return _plain(self.type)[2]


def slots_of(command: Callable[..., Any]) -> tuple[Slot, ...]:
    """Everything that may be typed for a command, in the order of its signature."""
    known, bare = get_type_hints(command, include_extras=True), get_type_hints(command)
    found: list[Slot] = []
    for argument in inspect.signature(command).parameters.values():
        said = _said(known[argument.name])
        if not said.parse:
            continue
        kind = bare[argument.name]
        if is_dataclass(kind):
            found += _fields(argument.name, cast("type", kind))
        else:
            by_place = argument.kind is not inspect.Parameter.KEYWORD_ONLY
            flags = () if by_place else _flags(argument.name, said)
            found.append(Slot(argument.name, flags, kind, argument.default, said, argument.kind is inspect.Parameter.VAR_POSITIONAL))
    return tuple(found)


def call_of(command: Callable[..., Any], slots: Sequence[Slot], values: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments and keywords that the values come to; `values` by the slots' names."""
    places: list[Any] = []
    keywords: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    for slot in slots:
        if slot.group:
            groups.setdefault(slot.group, {})
        if slot.name in values and slot.group:
            groups[slot.group][slot.name] = values[slot.name]
        elif slot.rest:
            places += values.get(slot.name, ())
        elif not slot.flags:
            places.append(values.get(slot.name, slot.default))
        elif slot.name in values:
            keywords[slot.name] = values[slot.name]
    kinds = get_type_hints(command) if groups else {}
    return tuple(places), {**keywords, **{name: kinds[name](**given) for name, given in groups.items()}}


def wants_output(command: Callable[..., Any]) -> bool:
    """Whether `main` hands its `output` in."""
    return "output" in inspect.signature(command).parameters


def _fields(group: str, kind: type) -> list[Slot]:
    known, bare = get_type_hints(kind, include_extras=True), get_type_hints(kind)
    return [
        Slot(
            field.name,
            _flags(field.name, _said(known[field.name])),
            bare[field.name],
            REQUIRED if field.default is MISSING else field.default,
            _said(known[field.name]),
            group=group,
        )
        for field in fields(kind)
    ]


def _flags(name: str, said: Parameter) -> tuple[str, ...]:
    if said.name:
        return (said.name,) if isinstance(said.name, str) else said.name
    return (f"--{name.strip('_').replace('_', '-')}",)


def _said(annotation: Any) -> Parameter:
    """Our own words in an annotation, also in one of its alternatives."""
    if get_origin(annotation) is Annotated:
        return next((word for word in annotation.__metadata__ if isinstance(word, Parameter)), Parameter())
    if get_origin(annotation) in (Union, UnionType):
        return next((word for option in get_args(annotation) if (word := _said(option)) != Parameter()), Parameter())
    return Parameter()


def _plain(annotation: Any) -> tuple[type, bool, tuple[str, ...]]:
    """The type of one value, whether there may be several, and its choices."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        return _plain(next(option for option in get_args(annotation) if option is not type(None)))
    if origin is Literal:
        return str, False, tuple(str(choice) for choice in get_args(annotation))
    if origin in (list, tuple):
        return _plain(get_args(annotation)[0])[0], True, ()
    return cast("type", annotation), False, ()
