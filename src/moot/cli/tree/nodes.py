"""The nodes of the tree of commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Command:
    """One command of the command line."""

    path: str
    """`module:function`. Its arguments are declared with `Annotated[…, Parameter(…)]` (moot.cli.arguments.signatures)."""
    help: str
    """One imperative sentence."""
    examples: tuple[str, ...]
    """Whole command lines, at least one."""
    details: str = ""
    """Another paragraph for the command's own help page."""
    bare: bool = False
    """True for a plain function that needs neither the event loop nor the log, and is called without importing them."""


@dataclass(frozen=True, slots=True)
class Group:
    """Commands that share a first word."""

    help: str
    commands: Mapping[str, Command | Group]
    examples: tuple[str, ...]
    details: str = ""
    sections: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Headings for the list of commands. Empty means a single list."""
    options: tuple[tuple[str, str], ...] = ()
    """Options of the group without a command, as rows of the help page. Empty means that it only shows its help."""
    default: str = ""
    """The command that runs if none is given. Empty means that the help is shown."""


def command(path: str, help: str, examples: tuple[str, ...], *, details: str = "", bare: bool = False) -> Command:
    """Return a command whose path is relative to `moot.cli`."""
    return Command(f"moot.cli.{path}", help, examples, details, bare)
