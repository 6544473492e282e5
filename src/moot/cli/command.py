"""What a command is, and a group of commands: where each is called from, and its help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Command", "Group"]


@dataclass(frozen=True, slots=True)
class Command:
    """Where a command is, and its help."""

    path: str
    """`module:function`; its arguments say in `Annotated[…, Parameter(…)]` (moot.cli.parameters) how they are typed."""
    words: str
    """One line, as in the list of commands."""
    examples: tuple[str, ...]
    """Whole command lines, at least one."""
    bare: bool = False
    """A plain function that needs neither the event loop nor the log: it is called without importing them."""

    def help(self) -> str:
        return "\n".join([self.words, "", "For instance:", *(f"  {example}" for example in self.examples)])


@dataclass(frozen=True, slots=True)
class Group:
    """Commands with a word in common."""

    words: str
    commands: Mapping[str, Command | Group]
    examples: tuple[str, ...] = ()
    alone: str = ""
    """What it does without one of its commands; "" = nothing but its help."""

    def help(self) -> str:
        names = "" if not self.commands or self.alone else f": {', '.join(self.commands)}"
        alone = ["", self.alone] if self.alone else []
        instances = ["", "For instance:", *(f"  {example}" for example in self.examples)] if self.examples else []
        return "\n".join([f"{self.words}{names}.", *alone, *instances])
