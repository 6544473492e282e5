"""Data types of the command tree: commands, and groups of commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Command:
    """One command on the command line."""

    path: str
    """`module:function`. Its arguments are declared with `Annotated[…, Parameter(…)]` (moot.cli.arguments.signatures)."""
    help: str
    """Summary of the command for help pages: one imperative sentence."""
    examples: tuple[str, ...]
    """Complete command lines to show on the help page. There must be at least one."""
    details: str = ""
    """Additional paragraph that is shown only on the command's own help page."""
    bare: bool = False
    """True for a synchronous function that needs no event loop and no logging. The modules for both are then not imported."""
    stays: bool = False
    """True if the command keeps a conversation open in a terminal."""
    remote: bool = False
    """True if the command can also use a server, see `moot.cli.remote`, or needs no data."""


@dataclass(frozen=True, slots=True)
class Group:
    """Commands that share a first word, such as `moot chat`."""

    help: str
    commands: Mapping[str, Command | Group]
    examples: tuple[str, ...]
    details: str = ""
    sections: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Headings for the list of commands. Empty means a single list."""
    prompt: Command | None = None
    """The command to run if the command line contains options or a prompt instead of the name of a command."""
    options: tuple[str, ...] = ()
    """The options of `prompt`, or of the default command, on the group's help page."""
    default: str = ""
    """Name of the command to run if none is given. Empty means that the help page is shown instead."""


def command(
    path: str, help: str, examples: tuple[str, ...], *, details: str = "", bare: bool = False, stays: bool = False, remote: bool = False
) -> Command:
    """Return a command whose path is relative to `moot.cli`."""
    return Command(f"moot.cli.{path}", help, examples, details, bare, stays, remote)
